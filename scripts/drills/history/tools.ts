import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { normalizedName } from '../../../src/domain/usernames.ts';
import { runTool } from '../../../test/support/tools/admin.ts';
import { profileOutcome } from '../checker/organization.ts';
import { runMigrateTool } from '../run-migrate.ts';
import type { Part } from './requests.ts';
import { usernames, users } from './turns.ts';
import type { FaultContext } from './fault.ts';
import type { DrilledOrganization } from './organization.ts';
import type { Deployment } from './deployment.ts';

/** `admin org set --username-comparison`, to the other comparison. */
export async function changeComparison(
  { deployment }: FaultContext,
  organization: DrilledOrganization,
): Promise<void> {
  const comparison = organization.comparison === 'exact' ? 'case-insensitive' : 'exact';
  const sentAt = performance.now();
  const ran = await runTool(deployment.env, [
    'org',
    'set',
    organization.id,
    '--username-comparison',
    comparison,
  ]);
  const answeredAt = performance.now();
  if (ran.code === 0) organization.comparison = comparison;
  const isRefused = ran.err.includes('usernames would be the same');
  const outcome = ran.code === 0 ? 'compared' : isRefused ? 'collisions' : undefined;
  organization.history.push({
    input: { kind: 'compare', comparison },
    outcome,
    sentAt,
    answeredAt: outcome === undefined ? Infinity : answeredAt,
  });
}

/** `admin fsck --repair`, which has nothing to repair: clients must not notice it. */
export async function repair({ deployment }: FaultContext): Promise<void> {
  const { out, err } = await runTool(deployment.env, 'fsck --repair --json');
  // In a cluster that changes under it, it may give up.
  const { hasGivenUp, hasFaults } = readFsck(out);
  if (hasFaults || (hasGivenUp && deployment.cluster === undefined))
    throw new Error(`fsck --repair found faults: ${out}${err}`);
}

/** What `admin fsck --json` has printed; the remains of an interrupted rebuild are not a fault. */
function readFsck(out: string): { hasGivenUp: boolean; hasFaults: boolean } {
  if (out === '') return { hasGivenUp: true, hasFaults: false };
  const { faults, complete } = JSON.parse(out) as { faults: { kind: string }[]; complete: boolean };
  return { hasGivenUp: !complete, hasFaults: faults.some(({ kind }) => kind !== 'generation-left-over') };
}

/** Throws if `admin fsck` finds a fault. */
export async function checkStore({ env }: Deployment): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { code, out, err } = await runTool(env, 'fsck --json');
    // It gives up if slots have just moved, or the cluster is not complete yet.
    const { hasGivenUp, hasFaults } = readFsck(out);
    if (hasFaults) throw new Error(`fsck found faults: ${out}${err}`);
    if (!hasGivenUp) return;
    if (attempt === 20) throw new Error(`fsck failed (${code}): ${err}`);
    await sleep(500);
  }
}

interface ProfileRecord {
  organizationId: string;
  userId: string;
  username?: string;
  avatar?: { objectDefinitionId: string };
}

interface DeniedRecord {
  organizationId: string;
  username: string;
}

/** `migrate export`: it shows each record as it was at some instant while it ran. */
export async function exportAll({ deployment, organizations }: FaultContext): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'drill-export-'));
  const sentAt = performance.now();
  const { code, err } = await runMigrateTool(deployment.env, ['export', '--to', join(folder, 'export')]);
  const answeredAt = performance.now();
  if (code === 0) {
    const profiles = await readRecords<ProfileRecord>(join(folder, 'export', 'profiles.ndjson'));
    const denylist = await readRecords<DeniedRecord>(join(folder, 'export', 'denylist.ndjson'));
    for (const organization of organizations) {
      for (const part of exportedParts(organization, profiles, denylist)) {
        organization.history.push({ ...part, sentAt, answeredAt });
      }
    }
  } else if (deployment.cluster === undefined) throw new Error(`the export failed: ${err}`);
  await rm(folder, { recursive: true, force: true });
}

function exportedParts(
  { id, comparison }: DrilledOrganization,
  profiles: readonly ProfileRecord[],
  denylist: readonly DeniedRecord[],
): Part[] {
  const normalized = (name: string): string => normalizedName(name, comparison);
  const own = new Map(
    profiles.filter(({ organizationId }) => organizationId === id).map((record) => [record.userId, record]),
  );
  const denied = new Set(
    denylist
      .filter(({ organizationId }) => organizationId === id)
      .map(({ username }) => normalized(username)),
  );
  return [
    ...users.map((user): Part => {
      const record = own.get(user);
      const held = { username: record?.username, avatar: record?.avatar?.objectDefinitionId };
      return {
        input: { kind: 'read', user },
        outcome: record === undefined ? 'no profile' : profileOutcome(held),
      };
    }),
    ...usernames.map((username): Part => {
      const outcome = denied.has(normalized(username)) ? 'denied' : 'not denied';
      return { input: { kind: 'look-up-denied', username }, outcome };
    }),
  ];
}

async function readRecords<Entry>(file: string): Promise<Entry[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);
}
