import { createPrivateKey, X509Certificate } from 'node:crypto';
import { textOf } from './config-formats.ts';
import type { ConnectOptions } from './redis/connection/connect.ts';

const variables = ['REDIS_CA_FILE', 'REDIS_CERT_FILE', 'REDIS_KEY_FILE'] as const;

/**
 * What is wrong with the files that the environment names for an encrypted connection to Redis, in messages that name the
 * variables. `files` has the content of those that can be read; others have been reported.
 */
export function findTlsMistakes(
  env: NodeJS.ProcessEnv,
  redisUrl: string | undefined,
  files: NonNullable<ConnectOptions['tls']>,
): string[] {
  const given = variables.filter((name) => textOf(env, name) !== undefined);
  if (redisUrl !== undefined && !/^rediss/i.test(redisUrl)) {
    return given.map((name) => `${name} is only for a REDIS_URL that begins with rediss`);
  }
  const mistakes: string[] = [];
  const read = <Value>(
    name: (typeof variables)[number],
    content: string | undefined,
    parse: (pem: string) => Value,
    expected: string,
  ): Value | undefined => {
    try {
      return content === undefined ? undefined : parse(content);
    } catch {
      mistakes.push(`${name} must name ${expected}`);
      return undefined;
    }
  };
  const toCertificate = (pem: string) => new X509Certificate(pem);
  read('REDIS_CA_FILE', files.ca, toCertificate, 'a certificate in PEM');
  const certificate = read('REDIS_CERT_FILE', files.cert, toCertificate, 'a certificate in PEM');
  const key = read(
    'REDIS_KEY_FILE',
    files.key,
    createPrivateKey,
    'a private key in PEM, without a passphrase',
  );
  if (given.includes('REDIS_CERT_FILE') !== given.includes('REDIS_KEY_FILE')) {
    mistakes.push('REDIS_CERT_FILE and REDIS_KEY_FILE must be set together');
  }
  if (key !== undefined && certificate?.checkPrivateKey(key) === false) {
    mistakes.push('REDIS_KEY_FILE is not the key of REDIS_CERT_FILE');
  }
  return mistakes;
}
