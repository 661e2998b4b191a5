/** A change of username, with the comparison forms of both names; '' for none. */
export interface RenameStep {
  userId: string;
  from: string;
  fromForm: string;
  to: string;
  toForm: string;
}

/** Renames that wait for each other, each after the one whose old name it takes. */
export interface Chain {
  steps: readonly RenameStep[];
  /** Whether the first one takes the old name of the last one. */
  isCycle: boolean;
}

/** Orders one organization's renames so that a name is always free before it is taken. */
export function orderRenames(renames: readonly RenameStep[]): Chain[] {
  const byOldName = new Map<string, RenameStep>();
  const byNewName = new Map<string, RenameStep>();
  for (const rename of renames) {
    if (rename.fromForm !== '') byOldName.set(rename.fromForm, rename);
    if (rename.toForm !== '') byNewName.set(rename.toForm, rename);
  }
  const left = new Set(renames);
  const follow = (start: RenameStep): RenameStep[] => {
    const steps: RenameStep[] = [];
    for (let next: RenameStep | undefined = start; next !== undefined && left.delete(next);) {
      steps.push(next);
      next = next.fromForm === '' ? undefined : byNewName.get(next.fromForm);
    }
    return steps;
  };
  const chains: Chain[] = [];
  for (const rename of renames) {
    if (byOldName.has(rename.toForm)) continue;
    chains.push({ steps: follow(rename), isCycle: false });
  }
  for (const rename of renames) {
    if (left.has(rename)) chains.push({ steps: follow(rename), isCycle: true });
  }
  return chains;
}
