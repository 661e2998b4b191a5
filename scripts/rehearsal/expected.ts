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
export type ExpectedProfile = ReturnType<typeof createExpectedProfile>;

export function createExpectedProfile(initial: SeenProfile) {
  const possible: Record<Field, string[]> = {
    username: [initial.username],
    avatar: [initial.avatar],
    picture: [initial.picture],
  };
  return {
    /** Notes an acknowledged change: from now on it must be seen. */
    acknowledged: (change: Partial<SeenProfile>): void => {
      for (const field of fields) if (change[field] !== undefined) possible[field] = [change[field]];
    },
    /** Notes a change whose outcome is not known: it may be seen from now on, or not. */
    doubtful: (change: Partial<SeenProfile>): void => {
      for (const field of fields) if (change[field] !== undefined) possible[field].push(change[field]);
    },
    /** The username, unless more than one is possible. */
    username: (): string | undefined => (possible.username.length === 1 ? possible.username[0] : undefined),
    /** The fields whose values no acknowledged change can have left. */
    wrong: (seen: SeenProfile): Field[] => fields.filter((field) => !possible[field].includes(seen[field])),
  };
}

/** The denylists that are possible after the changes of an administrator. */
export function createExpectedDenylist() {
  const possible = new Map<string, Set<boolean>>();
  return {
    acknowledged: (username: string, isDenied: boolean): void =>
      void possible.set(username, new Set([isDenied])),
    doubtful: (username: string, isDenied: boolean): void =>
      void possible.set(username, new Set([...(possible.get(username) ?? [false]), isDenied])),
    /** Every name that ever may have been denied. */
    known: (): string[] => [...possible.keys()],
    /** The names that are certainly denied. */
    denied: (): string[] => [...possible].flatMap(([name, states]) => (states.has(false) ? [] : [name])),
    /** The names that are on the list, or missing from it, against every acknowledged change. */
    wrong: (denied: ReadonlySet<string>): string[] => [
      ...[...possible].flatMap(([name, states]) => (states.has(denied.has(name)) ? [] : [name])),
      ...[...denied].filter((name) => !possible.has(name)),
    ],
  };
}
