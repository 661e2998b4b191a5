import type { Rename } from './names.ts';

/** Renames that wait for each other, each after the one whose old name it takes. */
export interface Chain {
  steps: readonly Rename[];
  /** Whether the first one takes the old name of the last one. */
  isCycle: boolean;
}

/** Orders one organization's renames so that a name is always free before it is taken. */
export function orderRenames(renames: readonly Rename[], normalize: (name: string) => string): Chain[] {
  const oldNames = new Set(renames.map(({ from }) => normalize(from)));
  const byNewName = new Map(renames.map((rename) => [normalize(rename.to), rename]));
  // A user without an old or a new name waits for nobody.
  oldNames.delete('');
  byNewName.delete('');
  const remaining = new Set(renames);
  const chainFrom = (start: Rename, isCycle: boolean): Chain => {
    const steps: Rename[] = [];
    for (let next: Rename | undefined = start; next !== undefined && remaining.delete(next);) {
      steps.push(next);
      next = byNewName.get(normalize(next.from));
    }
    return { steps, isCycle };
  };
  const chainEnds = renames.filter(({ to }) => !oldNames.has(normalize(to)));
  const chains = chainEnds.map((rename) => chainFrom(rename, false));
  for (const rename of renames) if (remaining.has(rename)) chains.push(chainFrom(rename, true));
  return chains;
}
