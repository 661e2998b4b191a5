import { adoptionFailureTexts } from '../../../cutover/compare/pending.ts';
import { authorityOf, modes, type Mode } from '../../../cutover/modes.ts';
import type { CutoverState, Instance } from '../../../cutover/switch/registry.ts';
import { countDifferences, inThisMode, type Evidence } from '../../../cutover/verdict/evidence.ts';
import { isSilent, judge, nextMode } from '../../../cutover/verdict/readiness.ts';
import { html, type Content, type Html } from '../../../lib/html.ts';
import { hourMs } from '../../../lib/days.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import { sparkline } from '../components/sparkline.ts';
import { figure, foldedList, section, swatch, table, type Column } from '../components/layout.ts';
import { label, moment, span, svgLength } from '../components/text.ts';

const sentences: Record<Mode, string> = {
  shadow: 'The legacy service answers. Its responses are compared with what Redis would have said.',
  mirror: 'The legacy service answers. Every change that it accepts reaches Redis, too.',
  reverse: 'The bridge answers. Every change that it accepts is replayed to the legacy service.',
  native: 'The bridge answers alone.',
};

const shownPeriods = 8;
const shownFailures = 10;
const shownHours = 48;

/** How far the bridge has taken over from the legacy service. */
export function cutoverSection(evidence: Evidence): Html {
  const { mode, since, underWay, history, now, instances } = evidence.state;
  return section(
    'cutover',
    'Cut-over from the legacy service',
    html`<div class="summary">
        <p class="mode">
          <strong>${mode}</strong> since ${moment(since)}
          ${underWay && html`– being switched to ${underWay.to}`}
        </p>
        <p class="sentence">${sentences[mode]}</p>
      </div>
      ${history.length > 0 && periods(history, now)} ${figures(evidence)} ${nextStep(evidence)}
      ${instancesTable(instances)}`,
  );
}

/** The modes so far: as a line to scale, and as a list with the latest first. */
function periods(history: CutoverState['history'], now: number): Html {
  const start = history[0]?.since ?? now;
  const whole = Math.max(1, now - start);
  const all = history.map((period, i) => ({ ...period, until: history[i + 1]?.since ?? now }));
  const bars = all.map(
    ({ mode, since, until }) =>
      html`<rect
        class="${colourOf(mode)}"
        x="${svgLength((since - start) / whole)}"
        width="${svgLength(Math.max(0.003, (until - since) / whole))}"
        height="12"
      />`,
  );
  const lines = all.toReversed().map(
    ({ mode, since, until, by }, i) =>
      html`<li>
        <span>${swatch(colourOf(mode))}${mode}</span>
        <span>${i === 0 ? html`since ${moment(since)}` : span(since, until)}</span>
        <span class="by">${by === 'default' ? 'the first mode' : html`<code>${by}</code>`}</span>
      </li>`,
  );
  return html`<div class="periods">
    <svg aria-hidden="true" width="100%" height="12">${bars}</svg>
    ${foldedList(lines, { shown: shownPeriods, id: 'earlier-modes', noun: 'earlier period' })}
  </div>`;
}

function figures(evidence: Evidence): Html | undefined {
  const { comparisons, state, replay, legacyPictures } = evidence;
  const count = (name: string, value: number, hint: string) => figure(name, formatNumber(value), hint);
  const pictures = legacyPictures && count('Pictures to copy', legacyPictures.count, 'at their legacy URLs');
  if (state.mode === 'native') return pictures && html`<dl>${pictures}</dl>`;
  const { compared, differingUsers, unsettled, failedAdoptions, unmappedKeys } = comparisons;
  const disputedKeys = unmappedKeys + comparisons.unusableKeys + comparisons.refusedKeys;
  const legacyAnswers = authorityOf(state.mode) === 'legacy';
  return html`<dl>
      ${
        legacyAnswers
          ? html`${count('Users who differ', differingUsers, 'when last compared')}
            ${count('Comparisons', compared, comparisonsHint(comparisons))}
            ${count('Disputed API keys', disputedKeys, `${formatNumber(unmappedKeys)} unknown to Redis`)}`
          : html`${count('Waiting for replay', replay.entries, backlogHint(evidence))}
            ${count('Set aside', replay.setAside, 'refused by the legacy service')}`
      }
      ${
        state.mode !== 'shadow' &&
        count('Changes in doubt', Math.max(unsettled, failedAdoptions), 'may not have reached Redis')
      }
      ${pictures}
    </dl>
    ${failures(evidence)} ${legacyAnswers && differencesOverTime(evidence)} ${differencesByField(evidence)}`;
}

function comparisonsHint({ different, unreadable }: Evidence['comparisons']): string {
  const unread = unreadable === 0 ? '' : `; ${formatNumber(unreadable)} could not be read`;
  return `in this mode; ${counted(different, 'difference')}${unread}`;
}

/** How often each field has differed in this mode, the most frequent first. */
function differencesByField(evidence: Evidence): Html | undefined {
  const differences = [...countDifferences(evidence)].toSorted(([, one], [, other]) => other - one);
  const most = differences[0]?.[1];
  if (most === undefined) return undefined;
  return html`<h3>Differences by field</h3>
    <ul class="differences">
      ${differences.map(
        ([field, count]) =>
          html`<li>
            <span>${field}</span>
            <svg aria-hidden="true" width="100%" height="8">
              <rect width="${svgLength(count / most)}" height="8" rx="2" />
            </svg>
            <span class="number">${formatNumber(count)}</span>
          </li>`,
      )}
    </ul>`;
}

/** How many comparisons differed in each of the last hours; a hole where nothing was compared. */
function differencesOverTime({ organizations, state: { now, since } }: Evidence): Html | undefined {
  const lastHour = Math.floor(now / hourMs) * hourMs;
  const firstHour = Math.max(lastHour - (shownHours - 1) * hourMs, Math.floor(since / hourMs) * hourMs);
  const count = Math.max(1, (lastHour - firstHour) / hourMs + 1);
  const hours = Array.from({ length: count }, () => ({ compared: 0, different: 0 }));
  for (const { from, compared, different } of inThisMode(organizations, since).flatMap((one) => one.hours)) {
    const hour = hours[(from - firstHour) / hourMs];
    if (hour === undefined) continue;
    hour.compared += compared;
    hour.different += different;
  }
  if (hours.every(({ compared }) => compared === 0)) return undefined;
  const { compared, different } = hours.at(-1) ?? { compared: 0, different: 0 };
  const most = Math.max(...hours.map((hour) => hour.different));
  return html`<h3>Differences over time</h3>
    <p class="trend">
      ${sparkline(hours.map((hour) => (hour.compared === 0 ? null : hour.different)))}
      <span
        >${formatNumber(different)} of ${counted(compared, 'comparison')} in the hour since
        ${moment(lastHour)}; at most ${formatNumber(most)} in an hour of the last
        ${counted(count, 'hour')}</span
      >
    </p>`;
}

/** Whose changes could not be brought over, and why. */
function failures({ comparisons: { failedAdoptions }, organizations }: Evidence): Html | undefined {
  if (failedAdoptions === 0) return undefined;
  const lines = organizations.flatMap(({ organizationId, adoptionFailures }) =>
    adoptionFailures.map(({ userId, reason, at }) =>
      findingLine(
        html`${label(userId)} of ${label(organizationId)}`,
        html`${adoptionFailureTexts[reason]}, ${moment(at)}`,
      ),
    ),
  );
  return html`<details id="failed-adoptions">
    <summary>${counted(failedAdoptions, 'user')} whose change could not be brought over</summary>
    <ul class="findings">
      ${lines.slice(0, shownFailures)}
    </ul>
  </details>`;
}

function backlogHint({ replay: { oldestAt, pausedBecause }, state: { now } }: Evidence): string {
  if (pausedBecause !== undefined) return `paused: ${pausedBecause}`;
  if (oldestAt === undefined) return 'all replayed';
  return `the oldest has waited ${Math.max(0, Math.round((now - oldestAt) / 1000))} s`;
}

/** Whether the next step is safe; if not, why, and what to do. */
function nextStep(evidence: Evidence): Html | undefined {
  const next = nextMode(evidence.state.mode);
  if (next === undefined) return undefined;
  const { ready, reasons, warnings } = judge(evidence, next);
  return html`<h3>
      Next step: ${next}
      <span class="verdict ${ready ? 'ready' : 'not-ready'}">${ready ? 'ready' : 'not ready'}</span>
    </h3>
    ${
      reasons.length + warnings.length === 0
        ? html`<p><code>profile-bridge admin cutover set ${next}</code></p>`
        : html`<ul class="findings">
            ${reasons.map(({ reason, remedy }) => findingLine(reason, remedy))}
            ${warnings.map(({ reason, remedy }) => findingLine(`Warning: ${reason}`, remedy))}
          </ul>`
    }`;
}

function findingLine(finding: Content, remedy: Content): Html {
  return html`<li>
    <span>${finding}</span>
    <span class="remedy">${remedy}</span>
  </li>`;
}

function instancesTable(instances: readonly Instance[]): Html {
  const columns: Column<Instance>[] = [
    { title: 'Instance', cell: ({ id }) => label(id) },
    { title: 'Kind', cell: ({ kind }) => kind },
    { title: 'Last heartbeat', cell: ({ silentMs }) => `${(silentMs / 1000).toFixed(1)} s ago` },
    {
      title: 'State',
      cell: (instance) =>
        isSilent(instance) ? html`<strong class="silent">silent: blocks every switch</strong>` : 'responding',
    },
  ];
  return html`<h3>Instances</h3>
    ${table('Instances', columns, instances, { none: 'None is running.' })}`;
}

function colourOf(mode: Mode): string {
  return `mode-${modes.indexOf(mode)}`;
}
