import { adoptionFailureTexts } from '../../../cutover/compare/findings.ts';
import { authorityOf, modes, type Mode } from '../../../cutover/modes.ts';
import type { Instance } from '../../../cutover/switch/registry.ts';
import type { GatheredEvidence } from '../../../cutover/verdict/evidence.ts';
import { judge, nextMode, silence, type Finding } from '../../../cutover/verdict/readiness.ts';
import { html, type Content, type Html } from '../../../lib/html.ts';
import { hourMs } from '../../../lib/days.ts';
import { counted, number } from '../../../lib/numbers.ts';
import { sparkline } from '../components/sparkline.ts';
import { section, table, type Column } from '../components/layout.ts';
import { label, moment, span } from '../components/text.ts';

const sentences: Record<Mode, string> = {
  shadow: 'The legacy service answers. Its responses are compared with what Redis would have said.',
  mirror: 'The legacy service answers. Every change that it accepts reaches Redis, too.',
  reverse: 'The bridge answers. Every change that it accepts is replayed to the legacy service.',
  native: 'The bridge answers alone.',
};

const shownPeriods = 8;
const shownFailures = 10;
const shownHours = 48;

/** How far the bridge has taken over from the legacy service; nothing where it never stood in front of one. */
export function cutoverSection(evidence: GatheredEvidence): Html | undefined {
  const { state } = evidence;
  if (!state.isStored) return undefined;
  const { mode, since, underWay } = state;
  return section(
    'cutover',
    'Cut-over from the legacy service',
    html`<div class="summary">
        <p class="mode">
          <strong>${mode}</strong> since ${moment(since)}
          ${underWay === undefined ? undefined : html`– being switched to ${underWay.to}`}
        </p>
        <p class="sentence">${sentences[mode]}</p>
      </div>
      ${periods(evidence)} ${mode === 'native' ? undefined : figures(evidence)} ${nextStep(evidence)}
      ${instances(state.instances)}`,
  );
}

/** The modes so far: as a line to scale, and as a list with the latest first. */
function periods({ state: { history, now } }: GatheredEvidence): Html | undefined {
  const first = history[0];
  if (first === undefined) return undefined;
  const whole = Math.max(1, now - first.since);
  const all = history.map((period, i) => ({ ...period, until: history[i + 1]?.since ?? now }));
  const bars = all.map(
    ({ mode, since, until }) =>
      html`<rect
        class="${colourOf(mode)}"
        x="${percentOf((since - first.since) / whole)}"
        width="${percentOf(Math.max(0.003, (until - since) / whole))}"
        height="12"
      />`,
  );
  const rows = all.toReversed().map(
    ({ mode, since, until, by }, i) =>
      html`<li>
        <span
          ><svg class="swatch" aria-hidden="true" width="10" height="10">
            <rect class="${colourOf(mode)}" width="10" height="10" rx="2" /></svg
          >${mode}</span
        >
        <span>${i === 0 ? html`since ${moment(since)}` : span(since, until)}</span>
        <span class="by">${by === 'default' ? 'the first mode' : html`<code>${by}</code>`}</span>
      </li>`,
  );
  return html`<div class="periods">
    <svg aria-hidden="true" width="100%" height="12">${bars}</svg>
    <ol>
      ${rows.slice(0, shownPeriods)}
    </ol>
    ${
      rows.length > shownPeriods
        ? html`<details id="earlier-modes">
            <summary>${counted(rows.length - shownPeriods, 'earlier period')}</summary>
            <ol>
              ${rows.slice(shownPeriods)}
            </ol>
          </details>`
        : undefined
    }
  </div>`;
}

function figures(evidence: GatheredEvidence): Html {
  const { comparisons, organizations, state, replay, legacyPictures } = evidence;
  const { compared, different, differingUsers, unsettled, failedAdoptions, unmappedKeys, refusedKeys } =
    comparisons;
  const comesFirst = authorityOf(state.mode) === 'legacy';
  const figure = (name: string, value: number, hint: Content): Html =>
    html`<div>
      <dt>${name}</dt>
      <dd>${number(value)} <small>${hint}</small></dd>
    </div>`;
  const fields = new Map<string, number>();
  for (const one of organizations) {
    if (one.since !== state.since) continue;
    for (const [field, count] of Object.entries(one.fields))
      fields.set(field, (fields.get(field) ?? 0) + count);
  }
  const differences = [...fields].toSorted(([, one], [, other]) => other - one);
  const most = differences[0]?.[1] ?? 1;
  return html`<dl class="figures">
      ${
        comesFirst
          ? html`${figure('Users who differ', differingUsers, 'when last compared')}
            ${figure('Comparisons', compared, `in this mode; ${counted(different, 'difference')}`)}
            ${figure('Disputed API keys', unmappedKeys + refusedKeys, `${number(unmappedKeys)} unknown to Redis`)}`
          : html`${figure('Waiting for replay', replay.entries, backlogHint(evidence))}
            ${figure('Set aside', replay.setAside, 'refused by the legacy service')}`
      }
      ${
        state.mode === 'shadow'
          ? undefined
          : figure('Changes in doubt', Math.max(unsettled, failedAdoptions), 'may not have reached Redis')
      }
      ${
        legacyPictures === undefined
          ? undefined
          : figure('Pictures to copy', legacyPictures.count, 'shown by the legacy service')
      }
    </dl>
    ${failures(evidence)} ${comesFirst ? differencesOverTime(evidence) : undefined}
    ${
      differences.length === 0
        ? undefined
        : html`<h3>Differences by field</h3>
            <ul class="differences">
              ${differences.map(
                ([field, count]) =>
                  html`<li>
                    <span>${field}</span>
                    <svg aria-hidden="true" width="100%" height="8">
                      <rect width="${percentOf(count / most)}" height="8" rx="2" />
                    </svg>
                    <span class="number">${number(count)}</span>
                  </li>`,
              )}
            </ul>`
    }`;
}

/** How many comparisons differed in each of the last hours; a hole where nothing was compared. */
function differencesOverTime({ organizations, state: { now, since } }: GatheredEvidence): Html | undefined {
  const lastHour = Math.floor(now / hourMs) * hourMs;
  const firstHour = Math.max(lastHour - (shownHours - 1) * hourMs, Math.floor(since / hourMs) * hourMs);
  const count = Math.max(1, (lastHour - firstHour) / hourMs + 1);
  const hours = Array.from({ length: count }, () => ({ compared: 0, different: 0 }));
  for (const one of organizations) {
    if (one.since !== since) continue;
    for (const { from, compared, different } of one.hours) {
      const hour = hours[(from - firstHour) / hourMs];
      if (hour === undefined) continue;
      hour.compared += compared;
      hour.different += different;
    }
  }
  if (hours.every(({ compared }) => compared === 0)) return undefined;
  const { compared, different } = hours.at(-1) ?? { compared: 0, different: 0 };
  const most = Math.max(...hours.map((hour) => hour.different));
  return html`<h3>Differences over time</h3>
    <p class="trend">
      ${sparkline(hours.map((hour) => (hour.compared === 0 ? null : hour.different)))}
      <span
        >${number(different)} of ${counted(compared, 'comparison')} in the hour since ${moment(lastHour)}; at
        most ${number(most)} in an hour of the last ${counted(count, 'hour')}</span
      >
    </p>`;
}

/** Whose changes could not be brought over, and why. */
function failures({ comparisons: { failedAdoptions }, organizations }: GatheredEvidence): Html | undefined {
  if (failedAdoptions === 0) return undefined;
  const lines = organizations.flatMap(({ organizationId, adoptionFailures }) =>
    adoptionFailures.map(
      ({ userId, reason, at }) =>
        html`<li>
          <span>${label(userId)} of ${label(organizationId)}</span>
          <span class="remedy">${adoptionFailureTexts[reason]}, ${moment(at)}</span>
        </li>`,
    ),
  );
  return html`<details id="failed-adoptions">
    <summary>${counted(failedAdoptions, 'user')} whose change could not be brought over</summary>
    <ul class="findings">
      ${lines.slice(0, shownFailures)}
    </ul>
  </details>`;
}

function backlogHint({ replay: { oldestAt, pausedBecause }, state: { now } }: GatheredEvidence): string {
  if (pausedBecause !== undefined) return `paused: ${pausedBecause}`;
  if (oldestAt === undefined) return 'nothing';
  return `the oldest for ${Math.max(0, Math.round((now - oldestAt) / 1000))} s`;
}

/** Whether the next step is safe; if not, why, and what to do. */
function nextStep(evidence: GatheredEvidence): Html | undefined {
  const next = nextMode(evidence.state.mode);
  if (next === undefined) return undefined;
  const { ready, reasons, warnings } = judge(evidence, next);
  const line = (finding: Finding, isWarning: boolean): Html =>
    html`<li>
      <span>${isWarning ? 'Warning: ' : ''}${finding.reason}</span>
      <span class="remedy">${finding.remedy}</span>
    </li>`;
  return html`<h3>
      Next step: ${next}
      <span class="verdict ${ready ? 'ready' : 'not-ready'}">${ready ? 'ready' : 'not ready'}</span>
    </h3>
    ${
      reasons.length + warnings.length === 0
        ? html`<p><code>profile-bridge admin cutover set ${next}</code></p>`
        : html`<ul class="findings">
            ${reasons.map((finding) => line(finding, false))}
            ${warnings.map((finding) => line(finding, true))}
          </ul>`
    }`;
}

function instances(all: readonly Instance[]): Html {
  const columns: Column<Instance>[] = [
    { title: 'Instance', cell: ({ id }) => label(id) },
    { title: 'Kind', cell: ({ kind }) => kind },
    { title: 'Last heartbeat', cell: ({ silentMs }) => `${(silentMs / 1000).toFixed(1)} s ago` },
    {
      title: 'State',
      cell: ({ silentMs }) =>
        silentMs > silence ? html`<strong class="silent">silent: blocks every switch</strong>` : 'responding',
    },
  ];
  return html`<h3>Instances</h3>
    ${all.length === 0 ? html`<p class="none">None is running.</p>` : table('Instances', columns, all)}`;
}

function colourOf(mode: Mode): string {
  return `mode-${modes.indexOf(mode)}`;
}

function percentOf(share: number): string {
  return `${(100 * share).toFixed(2)}%`;
}
