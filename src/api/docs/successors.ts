/** Keys that take the place of an operation, and what to know of them. `{org}` as in src/redis/README.md. */
interface Successor {
  keys: string[];
  /** In the little Markdown of descriptions. */
  note: string;
}

/** What replaces each operation, by its id. */
export const successors: Record<string, Successor> = {
  getProfile: {
    keys: ['HASH {org}p:<user>', 'HASH {org}objects'],
    note: "The profile is one hash: `u` username; picture `pf` (file), `pr` (reference) or `pu` (URL); avatar `ar` or `au`; verified wallet `w`. A reference's URL stands in `objects`. No hash, no profile.",
  },
  putProfile: {
    keys: ['HASH {org}p:<user>', 'HASH {org}n<g>:<number>', 'HASH {org}d<g>', 'SET {org}c:<user>'],
    note: 'A username is claimed in the index `n`, in one step with `u` of the profile, unless the denylist `d` has it; `g` is `index` in `{org}settings`. Where ownership is required, a reference must be in the collection `c`.',
  },
  banUsernames: {
    keys: ['HASH {org}d<g>', 'HASH {org}n<g>:<number>', 'HASH {org}p:<user>'],
    note: 'The name goes into the denylist `d` in one step with the new name of its user, in `n` and `u`.',
  },
  removeDeniedUsernames: {
    keys: ['HASH {org}d<g>', 'HASH {org}n<g>:<number>'],
    note: 'The field leaves the denylist `d`, unless the index `n` has the name in use.',
  },
  overwriteDenylist: {
    keys: ['HASH {org}d<g>', 'HASH {org}stage', 'HASH {org}n<g>:<number>'],
    note: 'The new list is gathered in `stage`, checked against `n`, and renamed to `d`: all of it, or nothing.',
  },
};
