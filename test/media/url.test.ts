import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { readMediaUrl } from '../../src/media/url.ts';

const read = (text?: string, region?: string) => readMediaUrl(text, { dataDir: '/data', region });

describe('a folder', () => {
  test.each([undefined, '', 'file:'])('is DATA_DIR/media for %j', (text) => {
    expect(read(text)).toEqual({ kind: 'folder', folder: '/data/media' });
  });

  test('is the path of a file: address, absolute or relative', () => {
    expect(read('file:///srv/my%20media')).toEqual({ kind: 'folder', folder: '/srv/my media' });
    expect(read('file:/srv/media')).toEqual({ kind: 'folder', folder: '/srv/media' });
    expect(read('file:./pictures')).toEqual({ kind: 'folder', folder: path.resolve('pictures') });
  });
});

describe('a bucket', () => {
  test('takes endpoint, region and prefix', () => {
    expect(read('s3://pics?endpoint=http://127.0.0.1:9000/&region=eu-central-1&prefix=a/b')).toEqual({
      kind: 's3',
      bucket: 'pics',
      endpoint: 'http://127.0.0.1:9000',
      region: 'eu-central-1',
      prefix: 'a/b/',
    });
  });

  test('without an endpoint is at AWS, in the region of the address or the environment', () => {
    const amazon = { endpoint: 'https://s3.eu-west-3.amazonaws.com', region: 'eu-west-3', prefix: '' };
    expect(read('s3://pics?region=eu-west-3')).toMatchObject(amazon);
    expect(read('s3://pics', 'eu-west-3')).toMatchObject(amazon);
  });

  test('with an endpoint and no region has the region that most services accept', () => {
    expect(read('s3://pics?endpoint=https://minio.example')).toMatchObject({ region: 'us-east-1' });
  });
});

test('of a bucket name that cannot be is said what one is made of', () => {
  expect(() => read('s3://b?region=x')).toThrow('has an unusable bucket; its name needs 3 to 63 lower-case');
  expect(() => read('s3://?region=x')).toThrow('names no bucket');
});

test.each([
  ['/srv/media', 'file:///path'],
  ['https://bucket.example', 's3://BUCKET'],
  ['file://host/media', 'file:///path/to/folder'],
  ['s3://', 's3://BUCKET'],
  ['s3://Pics?region=x', 's3://BUCKET'],
  ['s3://pics', 'region='],
  ['s3://pics/folder?region=x', 'prefix=folder/'],
  ['s3://key:secret@pics?region=x', 'AWS_ACCESS_KEY_ID'],
  ['s3://pics?region=x&acl=public', 'endpoint, region and prefix'],
  ['s3://pics?region=x&prefix=../up', 'prefix='],
  ['s3://pics?region=x&prefix=/root', 'prefix='],
  ['s3://pics?region=a b', 'region='],
  ['s3://pics?endpoint=minio:9000', 'endpoint=https://'],
  ['s3://pics?region=x&endpoint=', 'endpoint=https://'],
  ['s3://pics?endpoint=https://user:pass@minio', 'endpoint=https://'],
])('%s is refused in one line with the remedy', (text, remedy) => {
  expect(() => read(text)).toThrow(remedy);
  expect(() => read(text)).not.toThrow(/\n|secret|user:pass/);
});
