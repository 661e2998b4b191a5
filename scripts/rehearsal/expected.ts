/** A profile as clients see it, each field as text; empty if it is unset. */
export interface SeenProfile {
  username: string;
  avatar: string;
  /** The URL of a picture that is given by reference; `upload` for any other. */
  picture: string;
}

type Field = keyof SeenProfile;

const fields = ['username', 'avatar', 'picture'] as const satisfies Field[];

/** The profiles that are possible after the changes of one user. */
export interface ExpectedProfile {
  /** Notes an acknowledged change: from now on it must be seen. */
  acknowledged: (change: Partial<SeenProfile>) => void;
  /** Notes a change whose outcome is not known: it may be seen from now on, or not. */
  doubtful: (change: Partial<SeenProfile>) => void;
  /** The username, unless more than one is possible. */
  username: () => string | undefined;
  /** The fields whose values no acknowledged change can have left. */
  wrong: (seen: SeenProfile) => Field[];
}

export function createExpectedProfile(initial: SeenProfile): ExpectedProfile {
  const possible: Record<Field, string[]> = {
    username: [initial.username],
    avatar: [initial.avatar],
    picture: [initial.picture],
  };
  return {
    acknowledged: (change) => {
      for (const field of fields) if (change[field] !== undefined) possible[field] = [change[field]];
    },
    doubtful: (change) => {
      for (const field of fields) if (change[field] !== undefined) possible[field].push(change[field]);
    },
    username: () => (possible.username.length === 1 ? possible.username[0] : undefined),
    wrong: (seen) => fields.filter((field) => !possible[field].includes(seen[field])),
  };
}

/** The denylists that are possible after the changes of an administrator. */
export interface ExpectedDenylist {
  acknowledged: (username: string, isDenied: boolean) => void;
  doubtful: (username: string, isDenied: boolean) => void;
  /** Every name that ever may have been denied. */
  known: () => string[];
  /** The names that are certainly denied. */
  denied: () => string[];
  /** The names that are on the list, or missing from it, against every acknowledged change. */
  wrong: (denied: ReadonlySet<string>) => string[];
}

export function createExpectedDenylist(): ExpectedDenylist {
  const possible = new Map<string, Set<boolean>>();
  return {
    acknowledged: (username, isDenied) => void possible.set(username, new Set([isDenied])),
    doubtful: (username, isDenied) =>
      void possible.set(username, new Set([...(possible.get(username) ?? [false]), isDenied])),
    known: () => [...possible.keys()],
    denied: () => [...possible].flatMap(([name, states]) => (states.has(false) ? [] : [name])),
    wrong: (denied) => [
      ...[...possible].flatMap(([name, states]) => (states.has(denied.has(name)) ? [] : [name])),
      ...[...denied].filter((name) => !possible.has(name)),
    ],
  };
}
