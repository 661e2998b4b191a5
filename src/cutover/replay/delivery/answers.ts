import { encodeReference, type ProfileChange } from '../../../domain/profile.ts';
import { namesInUse, namesNotAdded } from '../../forward/denylist-answers.ts';
import { valuesOf } from '../../forward/headers.ts';
import type { AcceptedChange } from '../queue/changes.ts';

/**
 * In words, without values: what of a change the legacy service did not make, or the code of its refusal; undefined if
 * its answer says neither. `wanted`: what a profile is to have by a PUT.
 */
export function remarkOn(
  kind: AcceptedChange['kind'],
  wanted: ProfileChange,
  status: number,
  answer: unknown,
): string | undefined {
  if (status >= 300) return codeIn(answer);
  if (kind === 'put') return otherProfile(wanted, answer);
  const left = kind === 'remove' ? namesInUse(answer) : namesNotAdded(answer);
  if (left === undefined) return 'its answer could not be read';
  return left.length === 0 ? undefined : remarks[kind](left.length);
}

/**
 * In which fields a profile, as it is shown after a PUT (contract 2.2), has something else than was sent: a service may
 * shorten names, or pass over fields, and show it only by this. A field that it does not show counts as made.
 */
function otherProfile({ username, avatar }: ProfileChange, answer: unknown): string | undefined {
  const shown = (answer ?? {}) as Record<string, unknown>;
  const others = [
    otherValue('username', username, textOf(shown['username'])),
    otherValue('avatar', avatar && encodeReference(avatar), referenceIn(shown['avatarObjectDefinitionId'])),
  ].filter((one) => one !== undefined);
  return others.length === 0 ? undefined : `its answer shows ${others.join(' and ')}`;
}

/** Null is unset; undefined is neither sent nor shown. */
function otherValue(
  field: string,
  sent: string | null | undefined,
  shown: string | null | undefined,
): string | undefined {
  if (sent === undefined || shown === undefined || sent === shown) return undefined;
  if (shown === null) return `no ${field}`;
  return sent === null ? `an ${field}` : `another ${field}`;
}

/** Empty is as unset as null, and a number stands for its digits. */
function textOf(value: unknown): string | null | undefined {
  if (value === null || value === '') return null;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function referenceIn(value: unknown): string | null | undefined {
  if (value === null) return null;
  const ids = (value ?? {}) as Record<string, unknown>;
  const [datasourceId, objectDefinitionId] = [textOf(ids['datasourceId']), textOf(ids['objectDefinitionId'])];
  if (typeof datasourceId !== 'string' || typeof objectDefinitionId !== 'string') return undefined;
  return encodeReference({ datasourceId, objectDefinitionId });
}

/** What the legacy service did not do, for this many names. */
const remarks = {
  ban: (count: number) => `${count} of the names could not be denied`,
  remove: (count: number) => `${count} of the names could not be removed`,
  overwrite: (count: number) =>
    `the list was not replaced: ${count} of its names ${count === 1 ? 'is' : 'are'} in use`,
};

/**
 * The contract does not show the shape of errors (section 7): the first word under a name that ends in "code"; whatever
 * else is there may be personal.
 */
function codeIn(answer: unknown, depth = 0): string | undefined {
  if (typeof answer !== 'object' || answer === null || depth > 2) return undefined;
  for (const [name, value] of Object.entries(answer)) {
    if (/code$/i.test(name) && typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)) return value;
    const inner = codeIn(value, depth + 1);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/**
 * For how many seconds a response asks to wait (RFC 9110 §10.2.3); undefined if it does not, or not in a form that is
 * understood. A date counts by the clock of its service, if the response has that.
 */
export function retryAfterIn(headers: readonly string[]): number | undefined {
  const [value = ''] = valuesOf(headers, 'retry-after');
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const until = httpDate(value);
  const [date = ''] = valuesOf(headers, 'date');
  return until && Math.max(0, Math.ceil((until - (httpDate(date) ?? Date.now())) / 1000));
}

/** An HTTP-date in ms, in any of its three formats (RFC 9110 §5.6.7), of which one leaves out that it is in GMT. */
function httpDate(text: string): number | undefined {
  const isDate = /^[A-Z][a-z]+,? /.test(text);
  const at = isDate ? Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`) : NaN;
  return Number.isNaN(at) ? undefined : at;
}
