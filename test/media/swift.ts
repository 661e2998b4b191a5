import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe } from '@jest/globals';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';

// The system's own: Debian's packages are not for other Pythons on the PATH.
const python = '/usr/bin/python3';
const script = fileURLToPath(new URL('swift-server.py', import.meta.url));
const isInstalled = spawnSync(python, ['-c', 'import swift.common.middleware.s3api']).status === 0;

/** `describe`, or visibly skipped where OpenStack Swift (Debian: python3-swift) is not installed. */
export const describeWithS3 = isInstalled ? describe : describe.skip;

/** The credentials that the service of `startS3` accepts. */
export const s3Credentials = { accessKeyId: 'test:tester', secretAccessKey: 'testing' };

export interface S3Service {
  endpoint: string;
  port: number;
  createBucket: (name: string) => Promise<void>;
  stop: () => Promise<void>;
}

/** Starts an S3 service that verifies signatures. It keeps its data in `folder`, so it can be started there again. */
export async function startS3(folder: string, port = 0): Promise<S3Service> {
  const child = spawn(python, [script, folder, String(port)], { stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = once(child, 'exit');
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exited.then(() => Promise.reject(new Error('Swift did not start'))),
  ])) as [string];
  const endpoint = `http://127.0.0.1:${line}`;
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: s3Credentials,
  });
  return {
    endpoint,
    port: Number(line),
    createBucket: async (name) => {
      await client.send(new CreateBucketCommand({ Bucket: name }));
    },
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
