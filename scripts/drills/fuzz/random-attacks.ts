import { createRandom, type Random } from '../random.ts';
import type { Attack } from './attack.ts';
import { inChunks, mutations } from './mutations.ts';
import { encode, validRequests, type Credentials, type Request } from './request.ts';

/** The attack of this number: the same one for the same seed. */
export function randomAttack(seed: number, number: number, credentials: Credentials): Attack {
  const random = createRandom(seed * 1_000_003 + number);
  const count = random.between(0, 49) === 0 ? random.between(2, 120) : 1;
  const request = spoil(random.pick(validRequests(credentials)), random);
  const isChunked = random.between(0, 9) === 0;
  const sent = isChunked
    ? Buffer.concat([encode(asChunked(request)), inChunks(request.body, random)])
    : encode(request);
  const bytes = tamper(Buffer.concat(Array.from({ length: count }, () => sent)), random);
  const chunks = cut(bytes, random);
  return {
    name: `random attack ${number}`,
    chunks,
    mayOverload: count > 16 && bytes.includes('multipart/form-data'),
    ...(chunks.length > 1 && { pause: random.pick([0, 1, 5]) }),
    end: random.pick(['wait', 'wait', 'half-close', 'reset']),
  };
}

function spoil(valid: Request, random: Random): Request {
  // A connection that stays open can carry more than one request.
  const headers = valid.headers.filter(([name]) => name !== 'Connection' || random.between(0, 3) > 0);
  let request: Request = { ...valid, headers };
  for (let times = random.between(0, 3); times > 0; times--) {
    request = random.pick(mutations)(request, random);
  }
  return request;
}

function asChunked({ headers, ...request }: Request): Request {
  const others = headers.filter(([name]) => name !== 'Content-Length');
  return { ...request, headers: [...others, ['Transfer-Encoding', 'chunked']], body: Buffer.alloc(0) };
}

/** Mostly nothing; otherwise some bytes are changed, or the end is missing. */
function tamper(bytes: Buffer, random: Random): Buffer {
  switch (random.between(0, 9)) {
    case 0: {
      const other = Buffer.from(bytes);
      for (let times = random.between(1, 5); times > 0; times--) {
        other[random.between(0, other.length - 1)] = random.between(0, 255);
      }
      return other;
    }
    case 1:
      return bytes.subarray(0, random.between(1, bytes.length));
    default:
      return bytes;
  }
}

function cut(bytes: Buffer, random: Random): Buffer[] {
  if (random.between(0, 4) > 0) return [bytes];
  const chunks: Buffer[] = [];
  const size = Math.max(1, Math.ceil(bytes.length / random.between(2, 12)));
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}
