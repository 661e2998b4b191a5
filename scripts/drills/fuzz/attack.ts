import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Bytes for one connection, and how they are sent. */
export interface Attack {
  name: string;
  chunks: readonly Buffer[];
  /** Between two chunks, in ms. */
  pause?: number;
  /** What the client does once all is sent: waits for the answer, says that it sends no more, or hangs up. */
  end: 'wait' | 'half-close' | 'reset';
  /** The status of each answer, if known. */
  expected?: readonly number[];
  /** Whether it sends more pictures at once than the bridge decodes: some may be answered 503 `overloaded`. */
  mayOverload?: boolean;
}

export interface Target {
  host: string;
  port: number;
}

/** How long a response may take, in ms: less than any timeout of the bridge's. */
const responseTimeout = 700;
/** After a response, how long another one may take, in ms. */
const silence = 50;

/** Carries out an attack; the statuses of all answers that came. */
export async function carryOut(attack: Attack, target: Target, localAddress: string): Promise<number[]> {
  const received: Buffer[] = [];
  const socket = connect({ ...target, localAddress, allowHalfOpen: attack.end === 'half-close' });
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  // Being cut off is one of the answers.
  socket.on('error', () => {});
  let timer: NodeJS.Timeout | undefined;
  const giveUpAfter = (milliseconds: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => socket.destroy(), milliseconds);
  };
  socket.on('data', (chunk: Buffer) => {
    received.push(chunk);
    if (attack.expected === undefined) giveUpAfter(silence);
  });
  socket.on('end', () => socket.end());
  for (const [index, chunk] of attack.chunks.entries()) {
    if (index > 0 && attack.pause !== undefined) await sleep(attack.pause);
    if (socket.destroyed) break;
    if (!socket.write(chunk)) {
      await Promise.race([
        new Promise((resolve) => void socket.once('drain', resolve)),
        closed,
        sleep(responseTimeout),
      ]);
    }
  }
  if (attack.end === 'half-close') socket.end();
  if (attack.end === 'reset') socket.resetAndDestroy();
  giveUpAfter(attack.expected === undefined ? responseTimeout : 20_000);
  await closed;
  clearTimeout(timer);
  return statusesIn(Buffer.concat(received).toString('latin1'));
}

/** Of consecutive answers. No body of the bridge contains a line like that. */
function statusesIn(text: string): number[] {
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return statuses.filter((status) => status >= 200);
}
