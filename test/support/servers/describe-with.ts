import { describe } from '@jest/globals';
import { mariadbPrograms } from './mariadb.ts';
import { postgresPrograms } from './postgres.ts';

/** describe, or where the server's programs are missing describe.skip, with the reason in the title. */
export function describeWith(
  programs: string | undefined,
  missing: string,
): (title: string, suite: () => void) => void {
  if (programs !== undefined) return (title, suite) => describe(title, suite);
  return (title, suite) => {
    console.warn(`skipped: ${title} (${missing})`);
    describe.skip(`${title} (${missing})`, suite);
  };
}

/** A describe for tests that need PostgreSQL; skipped visibly where it is not installed. */
export const describeWithPostgres = describeWith(
  postgresPrograms,
  'PostgreSQL is not installed: apt-get install postgresql',
);

/** A describe for tests that need MariaDB; skipped visibly where it is not installed. */
export const describeWithMariadb = describeWith(
  mariadbPrograms,
  'MariaDB is not installed: apt-get install mariadb-server',
);
