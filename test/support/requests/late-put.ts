import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';

/** Begins a PUT of a profile, and does not send its body yet; resolves once the bridge asks for it. */
export async function beginPut(
  { bridge, organization }: { bridge: { url: string }; organization: { id: string } },
  apiKey: string,
  framing: Record<string, string | number> = { 'transfer-encoding': 'chunked' },
): Promise<ClientRequest> {
  const put = request(`${bridge.url}/api/profile/`, {
    method: 'PUT',
    headers: {
      'x-api-key': apiKey,
      'x-platform-organization-id': organization.id,
      'content-type': 'application/json',
      ...framing,
      // Sent only once the caller is authenticated, so the test knows when that has been.
      expect: '100-continue',
    },
  });
  put.flushHeaders();
  await once(put, 'continue');
  return put;
}

/** Sends the body, and reads the response. */
export async function finishPut(put: ClientRequest, body: string) {
  put.end(body);
  const [response] = (await once(put, 'response')) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, headers: response.headers, text: String(Buffer.concat(parts)) };
}
