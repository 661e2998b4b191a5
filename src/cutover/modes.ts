/** The modes of the cut-over, in the order in which they are usually passed through (README.md beside this file). */
export const modes = ['shadow', 'mirror', 'reverse', 'native'] as const;

/**
 * `shadow`: the legacy service answers, and its responses are compared with what is stored here. `mirror`: it answers,
 * and accepted changes are adopted here. `reverse`: the bridge answers, and its changes are replayed to the legacy
 * service. `native`: the bridge answers alone.
 */
export type Mode = (typeof modes)[number];

/** Which side's data is authoritative. */
export type Authority = 'legacy' | 'redis';

export function isMode(text: string): text is Mode {
  return (modes as readonly string[]).includes(text);
}

export function authorityOf(mode: Mode): Authority {
  return mode === 'shadow' || mode === 'mirror' ? 'legacy' : 'redis';
}

/** What `cutover set` requires for a step from one mode to another. */
export type StepRule =
  /** Allowed if the checks for the new mode pass, or with --force; or always. */
  | { kind: 'checked' | 'free' }
  /** Allowed with --force only, or not at all. */
  | { kind: 'forced' | 'impossible'; reason: string };

export function ruleOf(from: Mode, to: Mode): StepRule {
  const forward = modes.indexOf(to) - modes.indexOf(from);
  if (forward === 0) return { kind: 'impossible', reason: `the mode is ${to} already` };
  if (from === 'native') {
    const lacking = 'the legacy service has none of the changes made since the mode became native';
    if (to === 'shadow')
      return { kind: 'forced', reason: `${lacking}: import a migrate export into it first` };
    const back = 'the only way back from native is to shadow';
    return {
      kind: 'impossible',
      reason: `${back}, after importing a migrate export into the legacy service`,
    };
  }
  if (from === 'mirror' && to === 'shadow') return { kind: 'free' };
  if (Math.abs(forward) === 1) return { kind: 'checked' };
  return {
    kind: 'forced',
    reason: `a step from ${from} to ${to} skips ${modes[modes.indexOf(from) + Math.sign(forward)]}`,
  };
}
