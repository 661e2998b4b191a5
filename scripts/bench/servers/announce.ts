import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port, and says so as serve.ts expects it. Ends with the bench, however that ends. */
export function listenForBench(handle: RequestListener): void {
  const server = createServer(handle).listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`{"message":"listening","url":"http://127.0.0.1:${port}"}\n`);
  });
  process.stdin.resume().on('end', () => process.exit());
}
