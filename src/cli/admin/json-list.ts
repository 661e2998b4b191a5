/** Prints the elements of a JSON array as they come, since there may be many. */
export class JsonList {
  private readonly out: (text: string) => void;
  private readonly start: string;
  private state: 'empty' | 'begun' | 'ended' = 'empty';

  /** `start` is what comes before the elements, up to the bracket. */
  constructor(out: (text: string) => void, start = '[') {
    this.out = out;
    this.start = start;
  }

  add(element: unknown): void {
    this.out((this.state === 'empty' ? `${this.start}\n` : ',\n') + JSON.stringify(element));
    this.state = 'begun';
  }

  /** Ends the list with what comes after the elements, from the bracket on. */
  end(rest = ']'): void {
    this.out(`${this.state === 'empty' ? this.start : '\n'}${rest}\n`);
    this.state = 'ended';
  }

  /** Ends a list that has elements and no end, as after an error; else prints nothing, as other commands do then. */
  cutOff(rest?: string): void {
    if (this.state === 'begun') this.end(rest);
  }
}
