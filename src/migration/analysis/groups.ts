import { createSorter, separator } from './sorter.ts';
import { pad } from './spool.ts';
import type { Workspace } from './workspace.ts';

/** Values by key, in memory or on disk: any number of keys, and few values for each. */
export interface Groups<Value> {
  /** Await it: now and then it has to wait for the disk. The value goes through JSON. */
  add: (key: readonly string[], seq: number, value: Value) => Promise<void> | undefined;
  /** The values of each key, ordered by `seq`. */
  all: () => AsyncGenerator<Value[]>;
}

/** No groups yet. */
export function createGroups<Value>(workspace: Workspace): Groups<Value> {
  const sorter = createSorter(workspace);
  return {
    // JSON holds no control character, and so neither a line feed nor the separator.
    add: (key, seq, value) =>
      sorter.add([JSON.stringify(key), pad(seq), JSON.stringify(value)].join(separator)),
    all: async function* () {
      let values: Value[] = [];
      let current = '';
      for await (const line of sorter.sorted()) {
        const [key = '', , json = ''] = line.split(separator);
        if (key !== current && values.length > 0) yield values;
        if (key !== current) values = [];
        current = key;
        values.push(JSON.parse(json) as Value);
      }
      if (values.length > 0) yield values;
    },
  };
}
