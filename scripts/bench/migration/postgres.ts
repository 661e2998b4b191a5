import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { organizationBase, profileKey } from '../../../src/redis/keys.ts';
import { postgresPrograms, runPostgres, startPostgres } from '../../../test/support/servers/postgres.ts';
import { avatar, pictureUrl, wallet } from '../load/seed.ts';
import { changedAt } from '../pipe.ts';
import { organization, writeTable } from './inputs.ts';
import { runShell } from './programs.ts';

const mapping = `entities:
  profiles:
    key: [organizationId, userId]
    query: |
      SELECT '${organization}' AS "organizationId", id AS "userId", name AS username,
        picture AS "profilePictureUrl", datasource AS "avatar.datasourceId", object AS "avatar.objectDefinitionId",
        wallet AS "evmWalletAddress", true AS "evmWalletVerified", changed AS "updatedAt"
      FROM players
`;

const table = `CREATE TABLE players (id text, name text, bucket int,
  picture text DEFAULT '${pictureUrl}', datasource text DEFAULT '${avatar.datasourceId}',
  object text DEFAULT '${avatar.objectDefinitionId}', wallet text DEFAULT '${wallet}',
  changed bigint DEFAULT ${changedAt})`;

// The same columns as the mapping reads, and the bucket, which the migration computes. Every text is ASCII, so its
// length is its bytes.
const columns = 'id, name, bucket, picture, datasource, object, wallet, changed';
const awk = String.raw`
function text(value) { return "$" length(value) "\r\n" value "\r\n" }
BEGIN { FS = "\t"; ORS = "" }
{
  print "*12\r\n" text("HSET") text(ENVIRON["PROFILES"] $1) text("u") text($2) text("pu") text($4) text("ar") text($5 "\n" $6) text("w") text($7) text("t") text($8)
  print "*4\r\n" text("HSET") text(ENVIRON["NAMES"] $3) text($2) text($1)
}`;

export type PostgresSource = NonNullable<Awaited<ReturnType<typeof openPostgresSource>>>;

/** The profiles in a dedicated PostgreSQL; undefined if that is not installed. */
export async function openPostgresSource(folder: string, count: number) {
  if (postgresPrograms === undefined) return undefined;
  const server = await startPostgres();
  const url = server.url('postgres');
  const lines = join(folder, 'players.tsv');
  await writeTable(lines, count);
  await runPostgres(url, table);
  await runShell(`psql -q "$URL" -c "\\copy players (id, name, bucket) FROM '$TABLE'"`, {
    URL: url,
    TABLE: lines,
  });
  await runPostgres(url, 'VACUUM ANALYZE players');
  const file = join(folder, 'map.yaml');
  await writeFile(file, mapping);
  const base = organizationBase('pipe:', organization);
  return {
    url,
    mapping: file,
    /** Copies them to Redis by `psql COPY | awk | redis-cli --pipe`; how many seconds that took. */
    pipe: async (redisUrl: string): Promise<number> =>
      await runShell(
        `psql -q "$URL" -c 'COPY (SELECT ${columns} FROM players) TO STDOUT' |
         LC_ALL=C awk "$AWK" |
         redis-cli -u "$REDIS" --pipe`,
        {
          URL: url,
          AWK: awk,
          REDIS: redisUrl,
          PROFILES: profileKey(base, ''),
          NAMES: `${base}n0:`,
        },
      ),
    stop: server.stop,
  };
}
