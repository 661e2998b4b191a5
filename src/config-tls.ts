import { createPrivateKey, X509Certificate } from 'node:crypto';
import { textOf } from './config-formats.ts';
import type { ConnectOptions } from './redis/connection/connect.ts';

const contents = {
  REDIS_CA_FILE: 'a certificate in PEM',
  REDIS_CERT_FILE: 'a certificate in PEM',
  REDIS_KEY_FILE: 'a private key in PEM, without a passphrase',
};

/**
 * What is wrong with the files that the environment names for an encrypted connection to Redis, in messages that name
 * the variables. `files` has the content of those that can be read; the others have been reported already.
 */
export function findTlsMistakes(
  env: NodeJS.ProcessEnv,
  redisUrl: string | undefined,
  files: NonNullable<ConnectOptions['tls']>,
): string[] {
  const given = Object.keys(contents).filter((name) => textOf(env, name) !== undefined);
  if (redisUrl !== undefined && !/^rediss/i.test(redisUrl)) {
    return given.map((name) => `${name} is only for a REDIS_URL that begins with rediss`);
  }
  const mistakes: string[] = [];
  const read = <Value>(name: keyof typeof contents, parse: () => Value): Value | undefined => {
    try {
      return parse();
    } catch {
      mistakes.push(`${name} must name ${contents[name]}`);
      return undefined;
    }
  };
  const { ca, cert, key: keyFile } = files;
  read('REDIS_CA_FILE', () => ca && new X509Certificate(ca));
  const certificate = read('REDIS_CERT_FILE', () => (cert ? new X509Certificate(cert) : undefined));
  const key = read('REDIS_KEY_FILE', () => (keyFile ? createPrivateKey(keyFile) : undefined));
  if (given.includes('REDIS_CERT_FILE') !== given.includes('REDIS_KEY_FILE')) {
    mistakes.push('REDIS_CERT_FILE and REDIS_KEY_FILE must be set together');
  }
  if (key !== undefined && certificate?.checkPrivateKey(key) === false) {
    mistakes.push('REDIS_KEY_FILE is not the key of REDIS_CERT_FILE');
  }
  return mistakes;
}
