import { createSorter, separator } from './sorter.ts';
import { pad } from './spool.ts';
import type { Workspace } from './workspace.ts';

/** Values by key, in memory or on disk: any number of keys, and few values for each. */
export interface Groups<Value extends { readonly seq: number }> {
  /** The value goes through JSON. */
  add: (key: readonly string[], value: Value) => void;
  /** The values of each key, ordered by `seq`. */
  all: () => Generator<Value[]>;
}

/** No groups yet. */
export function createGroups<Value extends { readonly seq: number }>(workspace: Workspace): Groups<Value> {
  const sorter = createSorter(workspace);
  return {
    // JSON holds no control character, and so neither a line feed nor the separator.
    add: (key, value) =>
      sorter.add([JSON.stringify(key), pad(value.seq), JSON.stringify(value)].join(separator)),
    all: function* () {
      let values: Value[] = [];
      let current = '';
      for (const line of sorter.sorted()) {
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
