import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createCommandSplitter, wordsOf } from './resp.ts';

/**
 * What happens to a command. `kill`: neither it nor anything after it reaches Redis, on any connection. `lose-reply`:
 * Redis executes it, and the connection breaks before the client has the reply; it may reconnect.
 */
export type Action = 'forward' | 'kill' | 'lose-reply';

/**
 * Sits between a client and a Redis, and asks what to do with each command; `position` counts from 1, over all
 * connections; `words` are the command's name and arguments. While `decide` has not answered, what the same connection
 * sent later waits.
 */
export async function startCommandProxy(
  target: { host: string; port: number },
  decide: (position: number, words: readonly string[]) => Action | Promise<Action>,
) {
  let commands = 0;
  let isKilled = false;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.setNoDelay();
    // The other side notices when its own connection ends.
    socket.on('error', () => {});
    return socket.on('close', () => sockets.delete(socket));
  };
  const kill = (): void => {
    isKilled = true;
    for (const socket of sockets) socket.destroy();
  };

  const server = createServer((socket) => {
    const client = keep(socket);
    if (isKilled) return void client.destroy();
    const upstream = keep(connect(target));
    const passOn = (reply: Buffer): boolean => client.write(reply);
    upstream.on('data', passOn);
    upstream.on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());

    const handle = async (command: Buffer): Promise<void> => {
      if (upstream.destroyed || upstream.writableEnded) return;
      const action = await decide(++commands, wordsOf(command));
      if (action === 'kill') kill();
      else if (action === 'forward') upstream.write(command);
      else {
        upstream.off('data', passOn).resume();
        // Redis reads to the end before it closes: by then the command is executed.
        upstream.end(command);
        await once(upstream, 'close');
      }
    };
    const split = createCommandSplitter();
    let queue = Promise.resolve();
    client.on('data', (chunk) => {
      for (const command of split(chunk)) {
        queue = queue.then(async () => await handle(command)).catch(() => void client.destroy());
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    url: `redis://127.0.0.1:${address.port}`,
    /** Commands that have come in so far. */
    commands: (): number => commands,
    close: async (): Promise<void> => {
      server.close();
      kill();
      await once(server, 'close');
    },
  };
}
