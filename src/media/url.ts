import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface BucketAddress {
  kind: 's3';
  bucket: string;
  endpoint: string;
  region: string;
  /** Empty, or ending in a slash. */
  prefix: string;
}

type MediaAddress = { kind: 'folder'; folder: string } | BucketAddress;

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const prefixPath = /^(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*\/)*$/;
const s3Parameters = new Set(['endpoint', 'region', 'prefix']);

/**
 * Reads MEDIA_URL. Unset or `file:` means DATA_DIR/media, `file:///folder` or `file:relative/folder` that folder, and
 * `s3://bucket?endpoint=…&region=…&prefix=…` a bucket (without an endpoint: AWS, which needs a region). Throws an
 * Error of one line with the remedy.
 */
export function readMediaUrl(
  text: string | undefined,
  { dataDir, region }: { dataDir: string; region?: string | undefined },
): MediaAddress {
  const given = text === undefined || text === '' ? 'file:' : text;
  if (given.startsWith('file:')) return readFolder(given, dataDir);
  if (given.startsWith('s3://') && URL.canParse(given)) return readBucket(new URL(given), region);
  throw wrong('is neither a folder nor a bucket; write file:///path or s3://BUCKET?endpoint=…');
}

function readBucket(url: URL, defaultRegion: string | undefined): BucketAddress {
  if (url.username !== '' || url.password !== '')
    throw wrong('has credentials in it; give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  if (url.host === '') throw wrong('names no bucket; write s3://BUCKET?endpoint=…&region=…');
  if (!bucketName.test(url.host))
    throw wrong(
      'has an unusable bucket; its name needs 3 to 63 lower-case letters, digits, "-" or ".": s3://BUCKET?…',
    );
  if (url.pathname !== '' && url.pathname !== '/')
    throw wrong('has a path; write it as a parameter: s3://BUCKET?prefix=folder/');
  const unknown = [...url.searchParams.keys()].find((key) => !s3Parameters.has(key));
  if (unknown !== undefined)
    throw wrong(`has the unknown parameter "${unknown}"; the parameters are endpoint, region and prefix`);

  const given = url.searchParams.get('prefix') ?? '';
  const prefix = given === '' || given.endsWith('/') ? given : `${given}/`;
  if (!prefixPath.test(prefix))
    throw wrong(
      'has an unusable prefix; use letters, digits, "-", "_", "." and "/" such as prefix=bridge/media/',
    );

  const region = url.searchParams.get('region') ?? defaultRegion ?? '';
  if (!/^[a-z0-9-]*$/.test(region))
    throw wrong('has an unusable region; write it such as region=eu-central-1');
  const endpointGiven = url.searchParams.get('endpoint');
  if (endpointGiven === null && region === '')
    throw wrong('has neither an endpoint nor a region; add &region=… (AWS) or &endpoint=…');
  const address = endpointGiven ?? `https://s3.${region}.amazonaws.com`;
  if (!/^https?:[^?#@]+$/i.test(address) || !URL.canParse(address))
    throw wrong('has an endpoint that is not an http(s) address; write endpoint=https://HOST[:PORT]');
  const endpoint = new URL(address).href.replace(/\/+$/, '');
  return { kind: 's3', bucket: url.host, endpoint, region: region || 'us-east-1', prefix };
}

function readFolder(text: string, dataDir: string): MediaAddress {
  const given = text.slice('file:'.length);
  if (given === '') return { kind: 'folder', folder: path.resolve(dataDir, 'media') };
  // A URL parser would turn file:./media into /media.
  if (!given.startsWith('/')) return { kind: 'folder', folder: path.resolve(given) };
  try {
    return { kind: 'folder', folder: fileURLToPath(text) };
  } catch {
    throw wrong('is not a folder of this machine; write file:///path/to/folder');
  }
}

function wrong(reason: string): Error {
  return new Error(`MEDIA_URL ${reason}`);
}
