import type { SetAsideChange } from '../../../cutover/replay/queue/changes.ts';
import { createReplayQueue } from '../../../cutover/replay/queue/queue.ts';
import { readCutover } from '../../../cutover/switch/registry.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import { counted } from '../../../lib/numbers.ts';
import { adminCommand } from '../../command-line.ts';
import type { AdminCommand, AdminContext } from '../context.ts';
import { done, problem, wrongUsage, type CommandResult } from '../../tool.ts';
import { onlyOrganization } from '../options.ts';

interface AsideOptions {
  org?: string;
  all?: boolean;
}

/** `admin cutover aside`: changes that the legacy service refused while the mode was reverse. */
export function addAside(cutover: AdminCommand): void {
  const group = cutover
    .command('aside')
    .description(
      'decide about changes that were accepted here and refused by the legacy service; until each is retried or dropped, the mode cannot go back to mirror',
    )
    .examples('cutover aside list', 'cutover aside retry --all');
  group
    .command('list')
    .description('list each change with the reason; values are not shown')
    .option(...onlyOrganization)
    .examples('cutover aside list', 'cutover aside list --org acme --json')
    .runs(listAside);
  for (const [act, description] of [
    [
      'retry',
      "send the current state in place of each change: the user's whole profile, or those names of a denylist change that are still denied, or still allowed",
    ],
    ['drop', 'discard changes: neither the legacy service nor the bridge is changed'],
  ] as const) {
    group
      .command(act)
      .description(description)
      .argument('[id...]', 'ids of changes, as the list shows them')
      .option(...onlyOrganization)
      .option('--all', 'all changes that are set aside')
      .examples(
        `cutover aside ${act} 1767225600000-0 --org acme`,
        `cutover aside ${act} --all --org acme`,
        `cutover aside ${act} --all`,
      )
      .runs((context, ids: string[], options: AsideOptions) => decide(context, act, ids, options));
  }
}

async function listAside(context: AdminContext, { org }: AsideOptions): Promise<CommandResult> {
  const { changes } = await readSetAside(context, org);
  const shown = changes.map(({ id, at, setAsideAt, caller, change, status, reason }) => ({
    id,
    organizationId: caller.organizationId,
    change: change.kind,
    keyId: caller.keyId,
    ...(caller.userId !== undefined && { userId: caller.userId }),
    acceptedAt: formatInstant(at),
    setAsideAt: formatInstant(setAsideAt),
    status,
    reason,
  }));
  const lines = shown.map(
    ({ id, organizationId, change, userId, acceptedAt, status, reason }) =>
      `${id}  ${organizationId}  ${change}${userId === undefined ? '' : ` by ${userId}`}  accepted ${acceptedAt}: ${reason}${status === 0 ? '' : ` (status ${status})`}`,
  );
  return done({ setAside: shown }, lines.join('\n') || 'No change is set aside.');
}

async function decide(
  context: AdminContext,
  act: 'retry' | 'drop',
  ids: readonly string[],
  { org, all = false }: AsideOptions,
): Promise<CommandResult> {
  if (all === ids.length > 0) return wrongUsage('give either the ids of changes or --all');
  const { store, keyPrefix, queue, changes } = await readSetAside(context, org);
  const { mode } = await readCutover(store, keyPrefix);
  if (act === 'retry' && mode !== 'reverse') {
    return problem(
      `the mode is ${mode}, in which nothing is replayed to the legacy service: drop these changes (${adminCommand} cutover aside drop)`,
    );
  }
  const chosen = changes.filter(({ id }) => all || ids.includes(id));
  const shared = ids.find((id) => chosen.filter((one) => one.id === id).length > 1);
  if (shared !== undefined) {
    return wrongUsage(`changes of several organizations have the id ${shared}: add --org`);
  }
  const unknown = new Set(ids);
  let decided = 0;
  for (const { id, caller } of chosen) {
    if (!(await queue[act](caller.organizationId, id))) continue;
    decided += 1;
    unknown.delete(id);
  }
  const did = act === 'retry' ? 'queued again' : 'dropped';
  const json = { [act === 'retry' ? 'retried' : 'dropped']: decided, unknown: [...unknown] };
  const text = `${counted(decided, 'change')} ${did}.`;
  if (unknown.size === 0) return done(json, text);
  return problem(`not set aside: ${[...unknown].join(', ')} (see ${adminCommand} cutover aside list)`, {
    json,
    text,
  });
}

/** The changes set aside in an organization, or in all, one after the other. Throws if it does not exist. */
async function readSetAside(context: AdminContext, org: string | undefined) {
  const { store, keyPrefix } = await (org === undefined ? context.open() : context.existingOrganization(org));
  const queue = createReplayQueue(store, keyPrefix);
  const ids =
    org === undefined ? (await queue.state()).organizations.map((one) => one.organizationId) : [org];
  const changes: SetAsideChange[] = [];
  for (const id of ids) for (const change of await queue.listSetAside(id)) changes.push(change);
  return { store, keyPrefix, queue, changes };
}
