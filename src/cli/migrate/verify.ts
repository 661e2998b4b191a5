import { findOmission } from '../../cutover/verdict/omission.ts';
import { recordVerified, withdrawVerified } from '../../cutover/verdict/verified.ts';
import type { MigrationContext } from '../../migration/context/context.ts';
import type { Chosen, SourceChoice } from '../../migration/engine/read/choose.ts';
import { differing, problems, type Issues, type Reason } from '../../migration/context/issues.ts';
import type { Entity } from '../../migration/records/records.ts';
import { isRun, requestFullRound, readRun } from '../../migration/runs/runs.ts';
import { counted, formatNumber, totalOf } from '../../lib/numbers.ts';
import { table } from '../../lib/system/terminal.ts';
import { replicationIdsOf } from '../../redis/connection/client.ts';
import { cutoverKey } from '../../redis/keys.ts';
import { commonFault, listIssues } from './report/issues.ts';
import type { CommandResult } from '../tool.ts';
import { verify as compareBoth, type Verified } from '../../migration/engine/verify.ts';
import { withSource, type SessionChoice, type CliEnvironment } from './session.ts';

/** `migrate verify`: compares the source with Redis, every record and field, in both directions. */
export async function verify(
  environment: CliEnvironment,
  choice: SourceChoice & SessionChoice,
): Promise<CommandResult> {
  return await withSource('verify', environment, choice, async (chosen, context) => {
    const { store, prefix, issues } = context;
    const replicationIds = await replicationIdsOf(store);
    const isKnown = await isRun(context, chosen.run);
    const state = await readRun(context, chosen.run);
    const onConflict = state?.onConflict ?? 'abort';
    const hasAccepted = onConflict !== 'abort';
    const scope = { ...chosen.scope, onConflict };
    const verified = await compareBoth(scope, context, chosen.run);
    const { differences } = verified;
    const isFine = differences === 0;
    if (!isFine) {
      await requestFullRound(context, chosen.run);
      await withdrawVerified(store, prefix);
    }
    const isClean = isFine && choice.org === undefined && choice.entities === undefined;
    const whyNotRecorded = isClean ? await record(chosen, context, replicationIds) : undefined;
    const only = choice.org === undefined ? '' : `, organization ${choice.org} alone`;
    const found = counted(differences, 'difference');
    return {
      title: `Verified ${chosen.source.name} against Redis${only}.`,
      parts: [
        isKnown ? '' : unknownRun(chosen.run),
        coverage(verified),
        listIssues(issues, 'Differences:', hasAccepted ? differing : [...differing, ...problems]),
        hasAccepted
          ? listIssues(issues, `Refused, as --on-conflict ${onConflict} accepts (not a failure):`, problems)
          : '',
        listIssues(issues, 'Changed here since (not a failure):', ['changed-here']),
        isFine ? 'No differences.' : found,
        whyNotRecorded === undefined
          ? ''
          : `This verify is not recorded for the cut-over, since ${whyNotRecorded}.`,
      ],
      json: {
        differences,
        missing: issues.count('missing'),
        different: issues.count('different') + issues.count('newer-in-redis'),
        newerInRedis: issues.count('newer-in-redis'),
        extra: issues.count('extra'),
        index: issues.count('index'),
        refused: hasAccepted ? issues.count(problems) : 0,
        changedHere: issues.count('changed-here'),
        compared: Object.fromEntries(verified.compared),
        stored: Object.fromEntries(verified.stored),
        indexed: verified.indexed,
      },
      records: totalOf(verified.read.values()),
      error: isFine
        ? undefined
        : (commonFault(issues, verified.read) ??
          `${found} between the source and Redis: ${remedies(scope.entities, issues, { ...verified, hasAccepted }).join(', ')}, then verify again`),
    };
  });
}

/** Records a clean verify of everything for the cut-over. Returns why it does not count in mirror, if it does not. */
async function record(
  { source, scope }: Chosen,
  { store, prefix, issues, organizations: all, snapshotAt }: MigrationContext,
  replicationIds: string,
): Promise<string | undefined> {
  const mode = await store.hget(cutoverKey(prefix), 'mode');
  if (mode === null) return undefined;
  const organizations = new Set(all.all().map(({ id }) => id));
  const unknownAge = source.mayLag === true ? laggingDatabase : undatedFiles;
  const whyNot =
    snapshotAt === undefined
      ? unknownAge
      : await findOmission(store, prefix, { entities: scope.entities, organizations, snapshotAt });
  if (snapshotAt !== undefined && whyNot === undefined) {
    const hasConflicts = issues.count('username-conflict') > 0;
    const hasApiKeys = scope.entities.includes('api-keys');
    await recordVerified(store, prefix, { snapshotAt, replicationIds, hasConflicts, hasApiKeys });
  }
  return mode === 'mirror' ? whyNot : undefined;
}

const laggingDatabase =
  'what was read may lag behind, as a replica, a table that another server sends or holds, and a materialized view do: verify against the original, or files exported from it with --as-of';
const undatedFiles = 'the age of the files is unknown: give --as-of the time at which their export began';

/** What an apply under another name has accepted or migrated is not looked for. */
function unknownRun(run: string): string {
  return `There is no run ${run}: if the source was applied under another name, verify with the --run of that apply.`;
}

/** The remedies for the differences found. An extra record may be an invalid row of the source, which is not pruned. */
function remedies(
  entities: readonly Entity[],
  issues: Issues,
  { hasAccepted, comparisons, freedByPrune }: Verified & { hasAccepted: boolean },
): string[] {
  const has = (...reasons: Reason[]): boolean => issues.count(reasons) > 0;
  const isExtra = (entity: Entity): boolean => issues.count('extra', entity) > 0;
  const isReadable = (entity: Entity): boolean => issues.count('invalid', entity) === 0;
  const mustCorrect =
    (!hasAccepted && issues.count(problems) > freedByPrune) ||
    entities.some((entity) => isExtra(entity) && !isReadable(entity));
  const canPrune = entities.some((entity) => isExtra(entity) && isReadable(entity));
  const canApply = issues.count(['missing', 'different']) > comparisons;
  return [
    ...(mustCorrect ? ['correct the source'] : []),
    ...(comparisons > 0 ? ['change the comparison of names with profile-bridge admin org set'] : []),
    ...(issues.count('index', 'profiles') > 0
      ? ['repair the index with profile-bridge admin fsck --repair']
      : []),
    ...(issues.count('index', 'organizations') > 0
      ? ['register its organizations with profile-bridge admin fsck --repair']
      : []),
    ...(canPrune
      ? ['apply again with --prune']
      : mustCorrect || canApply
        ? ['apply again (it will read everything)']
        : []),
    ...(has('newer-in-redis')
      ? ['apply with --trust-source if the source is right where Redis is newer']
      : []),
  ];
}

/** What was compared, and how much of it. */
function coverage({ compared, stored, indexed }: Verified): string {
  const rows = [...compared].map(([entity, records]) => [
    entity,
    formatNumber(records),
    stored.has(entity) ? formatNumber(stored.get(entity) ?? 0) : undefined,
    fieldsOf[entity],
  ]);
  const figures = ['in the source', 'in Redis'];
  const text = table(['', ...figures, 'compared'], rows, figures);
  return compared.has('profiles')
    ? `${text}\nEntries of the name index compared with the profiles: ${formatNumber(indexed)}.`
    : text;
}

const fieldsOf: Readonly<Record<Entity, string>> = {
  organizations: 'all settings',
  'api-keys': 'hash, role, user, client, expiry',
  objects: 'reference, URL',
  collections: 'user, reference',
  profiles: 'all fields, updatedAt, username in the index',
  denylist: 'name, spelling',
};
