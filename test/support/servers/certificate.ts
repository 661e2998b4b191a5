import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describeWith } from './describe-with.ts';

const isInstalled = spawnSync('openssl', ['version']).status === 0;

/** A describe for tests that need a certificate; skipped visibly where nothing can make one. */
export const describeWithOpenssl = describeWith(
  isInstalled ? 'openssl' : undefined,
  'openssl is not installed: apt-get install openssl',
);

/** Makes a certificate for 127.0.0.1, signed by itself, and its key: the paths of both, in PEM. */
export function makeCertificate(folder: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...algorithm, ...subject, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  });
  return { cert, key };
}
