import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port, and prints the URL, as serve.ts expects it. Ends with the bench, however that ends. */
export function listenForBench(handle: RequestListener): void {
  const server = createServer(handle).listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`http://127.0.0.1:${port}\n`);
  });
  process.stdin.resume().on('end', () => process.exit());
}

/** Answers with a text of JSON. */
export function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}
