import { createSorter, pad, separator } from './sorter.ts';
import type { Workspace } from './workspace.ts';

/** Values by key, in memory or on disk: any number of keys, and few values for each. */
export function createGroups<Value extends { readonly seq: number }>(workspace: Workspace) {
  const sorter = createSorter(workspace);
  return {
    /** The value goes through JSON, which holds no control character: neither a line feed nor the separator. */
    add: (key: readonly string[], value: Value): void =>
      sorter.add([JSON.stringify(key), pad(value.seq), JSON.stringify(value)].join(separator)),
    /** The values of each key, ordered by `seq`. */
    all: function* (): Generator<Value[]> {
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
