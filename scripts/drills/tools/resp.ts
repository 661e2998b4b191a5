/**
 * Splits what a client sends into commands: arrays of bulk strings, as every client library writes them (RESP, "Sending
 * commands to a Redis server"). Returns a function that takes a chunk and gives the commands it completes, as the bytes
 * they came in.
 */
export function createCommandSplitter(): (chunk: Buffer) => Buffer[] {
  let pending = Buffer.alloc(0);
  return (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    const commands: Buffer[] = [];
    for (let end = endOfCommand(pending); end !== undefined; end = endOfCommand(pending)) {
      commands.push(pending.subarray(0, end));
      pending = pending.subarray(end);
    }
    return commands;
  };
}

/** The name and the arguments of a command. */
export function wordsOf(command: Buffer): string[] {
  const count = numberAt(command, 0, '*');
  const words: string[] = [];
  let at = count?.next ?? 0;
  for (let left = count?.value ?? 0; left > 0; left--) {
    const length = numberAt(command, at, '$');
    if (length === undefined) break;
    at = length.next + length.value;
    words.push(command.toString('utf8', length.next, at));
    at += 2;
  }
  return words;
}

/** Where the first command ends; undefined if it is not all there. */
function endOfCommand(bytes: Buffer): number | undefined {
  const count = numberAt(bytes, 0, '*');
  if (count === undefined) return undefined;
  let at = count.next;
  for (let left = count.value; left > 0; left--) {
    const length = numberAt(bytes, at, '$');
    if (length === undefined) return undefined;
    at = length.next + length.value + 2;
  }
  return at <= bytes.length ? at : undefined;
}

function numberAt(bytes: Buffer, at: number, sign: string): { value: number; next: number } | undefined {
  const end = bytes.indexOf('\r\n', at);
  if (end === -1) return undefined;
  const text = bytes.toString('latin1', at, end);
  if (!text.startsWith(sign)) throw new Error(`"${text}" does not begin a command`);
  return { value: Number(text.slice(1)), next: end + 2 };
}
