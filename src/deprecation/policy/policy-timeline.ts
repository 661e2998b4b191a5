import { dayMs, hourMs, minuteMs } from '../../lib/days.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import type { PolicyView } from './policy-view.ts';

/** The policy's dates in order of time, `now` (ms) among them, as lines of text for a terminal. */
export function timelineLines(view: PolicyView, now: number): string[] {
  const events: [at: string | null, what: string][] = [
    [view.deprecatedAt, 'deprecated'],
    ...view.brownouts.map(({ start, end }): [string, string] => [start, `brownout until ${end}`]),
    ...view.exemptOrganizations.map(({ organizationId, until }): [string, string] => [
      until,
      `exemption of organization ${organizationId} ends`,
    ]),
    ...view.exemptKeys.map(({ keyId, until }): [string, string] => [until, `exemption of key ${keyId} ends`]),
    [view.sunsetAt, view.afterSunset === 'gone' ? 'sunset: gone from here on' : 'sunset: still served'],
  ];
  const dated = events.flatMap(([at, what]) => (at === null ? [] : [{ at: Date.parse(at), what }]));
  if (dated.length === 0) return [];
  const all = [...dated, { at: now, what: '' }].toSorted((a, b) => a.at - b.at);
  return all.map(({ at, what }) => {
    const when = formatInstant(Math.floor(at / 1000) * 1000);
    return what === '' ? `> ${when}  now: ${view.phase}` : `  ${when}  ${what} (${distance(at - now)})`;
  });
}

const words = new Intl.RelativeTimeFormat('en');

/** `in 3 days`, `2 hours ago`: in whole units that are still to come, or have passed. */
function distance(ms: number): string {
  if (Math.abs(ms) < 2 * hourMs) return words.format(Math.ceil(ms / minuteMs), 'minute');
  if (Math.abs(ms) < 2 * dayMs) return words.format(Math.ceil(ms / hourMs), 'hour');
  return words.format(Math.ceil(ms / dayMs), 'day');
}
