import type { Attack } from './attack.ts';
import { encode, file, makeRequest, part, type Credentials, type Request } from './request.ts';

const profile = '/api/profile/';
const form = 'multipart/form-data; boundary=boundary';

/** Attacks whose answer is known. */
export function knownAttacks({ organizationId, playerKey, adminKey }: Credentials): readonly Attack[] {
  const player = { organizationId, apiKey: playerKey };
  const admin = { organizationId, apiKey: adminKey };
  const stranger = { organizationId, apiKey: 'wrong' };
  const get = makeRequest('GET', profile, player);
  const upload = (body: Buffer): Request => makeRequest('PUT', profile, player, body, form);
  const overwrite = (body: Buffer): Request =>
    makeRequest('PUT', `${profile}username/denylist/`, admin, body);
  const withHeaders = (request: Request, ...more: [string, string][]): Request => ({
    ...request,
    headers: [...request.headers, ...more],
  });
  const one = (name: string, request: Request, status: number, end: Attack['end'] = 'wait'): Attack => ({
    name,
    chunks: [encode(request)],
    end,
    expected: [status],
  });
  const repeated = ({ headers, ...request }: Request, count: number): Buffer => {
    const kept = encode({ ...request, headers: headers.filter(([name]) => name !== 'Connection') });
    return Buffer.concat([...Array.from({ length: count - 1 }, () => kept), encode(get)]);
  };
  const small = Buffer.from('{"username":"x"}');
  const body = part('username', 'abc');

  return [
    { name: '800 pipelined requests, and the client hangs up', chunks: [repeated(get, 800)], end: 'reset' },
    {
      name: '80 pipelined requests are answered in order',
      chunks: [repeated(get, 80)],
      end: 'wait',
      expected: Array.from({ length: 80 }, () => 200),
    },
    one('a client that has ended its side gets its answer', get, 200, 'half-close'),
    one('two Host headers', withHeaders(get, ['Host', 'other.example.com']), 400),
    one('no Host header', { ...get, headers: get.headers.filter(([name]) => name !== 'Host') }, 400),
    one('a header of 20,000 bytes', withHeaders(get, ['x-long', 'x'.repeat(20_000)]), 431),
    one(
      'a wrong key with an expectation',
      withHeaders(makeRequest('PUT', profile, stranger, small), ['Expect', '100-continue']),
      401,
    ),
    one(
      'a length and chunks at once',
      withHeaders(makeRequest('PUT', profile, player, small), ['Transfer-Encoding', 'chunked']),
      400,
    ),
    one('two lengths', withHeaders(makeRequest('PUT', profile, player, small), ['Content-Length', '3']), 400),
    one('a method that nobody knows', { ...get, method: 'BREW' }, 400),
    one(
      'a text part in UTF-16',
      upload(part('username', 'abc', '\r\nContent-Type: text/plain; charset=utf-16')),
      400,
    ),
    one('a text part that is not UTF-8', upload(part('username', Buffer.from([0x61, 0xff]))), 400),
    one('a multipart body without its end', upload(body.subarray(0, body.length - 8)), 400),
    one(
      'a multipart body without a boundary',
      makeRequest('PUT', profile, player, body, 'multipart/form-data'),
      400,
    ),
    one('a file that is no image', upload(file(Buffer.from('MZ'))), 415),
    one('a file that only begins as an image', upload(file(Buffer.from('GIF89a, it says'))), 422),
    one(
      'JSON that is 10,000 arrays deep',
      makeRequest('PUT', profile, player, Buffer.from('['.repeat(10_000))),
      400,
    ),
    one(
      'a JSON body of 2 MB for a profile',
      makeRequest('PUT', profile, player, Buffer.alloc(2_000_000, 0x20)),
      413,
    ),
    one(
      'a list of a million names that are none',
      overwrite(Buffer.from(`[${'"",'.repeat(999_999)}""]`)),
      400,
    ),
    one('a list of 17 MB', overwrite(Buffer.from(`["${'x'.repeat(17_000_000)}"]`)), 413),
    one(
      'an early refusal of an old client',
      { ...makeRequest('PUT', profile, stranger, Buffer.alloc(900_000, 0x20)), version: 'HTTP/1.0' },
      401,
    ),
  ];
}

/** A request whose body never comes: 'Content-Length' says there is one. */
export function unfinished({ organizationId, playerKey }: Credentials, isUpload: boolean): Buffer {
  const whole = isUpload
    ? makeRequest('PUT', profile, { organizationId, apiKey: playerKey }, file(Buffer.alloc(100_000)), form)
    : makeRequest('PUT', profile, { organizationId, apiKey: 'wrong' }, Buffer.alloc(100_000));
  return encode({ ...whole, body: whole.body.subarray(0, 10) });
}
