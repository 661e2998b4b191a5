/** Prints the elements of a JSON array as they come, since there may be many; `start` ends with its bracket. */
export function createJsonList(out: (text: string) => void, start = '[') {
  let state: 'empty' | 'begun' | 'ended' = 'empty';
  /** Ends the list with what comes after the elements, from the bracket on. */
  const end = (rest = ']'): void => {
    out(`${state === 'empty' ? start : '\n'}${rest}\n`);
    state = 'ended';
  };
  return {
    add: (element: unknown): void => {
      out((state === 'empty' ? `${start}\n` : ',\n') + JSON.stringify(element));
      state = 'begun';
    },
    end,
    /** Ends a list that has elements and no end, as after an error; else prints nothing, as other commands do then. */
    cutOff: (rest?: string): void => {
      if (state === 'begun') end(rest);
    },
  };
}
