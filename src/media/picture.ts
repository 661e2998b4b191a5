import sharp, { type Sharp } from 'sharp';
import type { PictureExtension } from './store.ts';

export type DecodedPicture =
  | { kind: 'picture'; bytes: Buffer; extension: PictureExtension }
  /** Neither JPEG, PNG, WebP nor GIF, judging by its bytes. */
  | { kind: 'unsupported' }
  /** One of the four, but it does not decode or is too large; `reason` continues the words "The picture". */
  | { kind: 'invalid'; reason: string }
  /** Too many pictures of this sender, or of all, are being decoded; nothing was done. */
  | { kind: 'busy'; limit: 'sender' | 'all' };

const maxPixels = 40_000_000;
/** The longest side of a JPEG or GIF. For a wider PNG, the rows that libvips holds at once can take gigabytes. */
const maxInputSide = 65_535;
/** Each scan of a progressive JPEG, usually about ten, goes over all pixels, and maxSeconds does not end them. */
const maxScans = 500;
const maxSide = 2048;
const maxSeconds = 10;

// Hostile bytes reach only these four decoders; libvips would otherwise open any format that it detects.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: [
    'VipsForeignLoadJpegBuffer',
    'VipsForeignLoadPngBuffer',
    'VipsForeignLoadWebpBuffer',
    'VipsForeignLoadNsgifBuffer',
  ],
});
// Every upload is decoded once. One thread per picture leaves the other cores to requests.
sharp.cache(false);
sharp.concurrency(1);

function extensionByBytes(bytes: Buffer): PictureExtension | undefined {
  const head = bytes.toString('latin1', 0, 12);
  if (head.startsWith('\xff\xd8\xff')) return 'jpg';
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'gif';
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return 'webp';
  return undefined;
}

/** Whether a JPEG has more scans than it may. Bytes of its metadata can look like a scan, but not so often. */
function hasTooManyScans(bytes: Buffer): boolean {
  const startOfScan = Buffer.from([0xff, 0xda]);
  const next = (from: number): number => bytes.indexOf(startOfScan, from);
  let scans = 0;
  for (let at = next(0); at !== -1 && scans <= maxScans; at = next(at + 2)) scans++;
  return scans > maxScans;
}

/**
 * Whether a GIF ends in a block, or before the frame that a block announces: libvips then shows the frames that are
 * whole, whatever `failOn` says. Many programs write no trailer (0x3b), or zeros in its place; that is not truncated.
 */
function isTruncatedGif(bytes: Buffer): boolean {
  const byte = (at: number): number => bytes[at] ?? 0;
  const coloursAt = (at: number): number => (byte(at) & 0x80 ? 3 * 2 ** ((byte(at) & 7) + 1) : 0);
  let at = 13 + coloursAt(10);
  let isAfterFrame = false;
  while (at < bytes.length) {
    const isFrame = byte(at) === 0x2c;
    if (!isFrame && byte(at) !== 0x21) return false;
    at += isFrame ? 11 + coloursAt(at + 9) : 2;
    // The block's data, in pieces that each begin with their length; the last one is empty.
    for (let size = byte(at); size > 0; size = byte(at)) at += size + 1;
    if (at >= bytes.length) return true;
    at++;
    isAfterFrame = isFrame;
  }
  return !isAfterFrame;
}

const encoders: Record<PictureExtension, (pixels: Sharp) => Sharp> = {
  jpg: (pixels) => pixels.jpeg({ quality: 85 }),
  png: (pixels) => pixels.png(),
  // The default effort of these two takes many times the time for a few percent of the size.
  webp: (pixels) => pixels.webp({ quality: 85, effort: 2 }),
  gif: (pixels) => pixels.gif({ effort: 2 }),
};

function reasonFor(error: unknown): string {
  const text = String(error);
  if (text.includes('exceeds pixel limit')) return 'has more than 40,000,000 pixels';
  if (text.includes('timeout: ')) return 'takes too long to decode';
  return 'cannot be decoded';
}

async function reencode(bytes: Buffer, extension: PictureExtension): Promise<DecodedPicture> {
  if (extension === 'jpg' && hasTooManyScans(bytes)) {
    return { kind: 'invalid', reason: `has more than ${maxScans} progressive scans` };
  }
  if (extension === 'gif' && isTruncatedGif(bytes)) return { kind: 'invalid', reason: 'cannot be decoded' };
  const input = {
    limitInputPixels: maxPixels,
    animated: true,
    // Refuses truncated pictures, except GIFs of several frames (see above). 'warning' would refuse photos of some
    // phones (Samsung's "Invalid SOS parameters").
    failOn: 'error',
  } as const;
  try {
    const { width, height, pages = 1, pageHeight = height, depth } = await sharp(bytes, input).metadata();
    if (Math.max(width, pageHeight) > maxInputSide) {
      return { kind: 'invalid', reason: 'has a side of more than 65,535 pixels' };
    }
    // libvips cannot rotate animations, and programs that write animations write no orientation.
    const pixels = sharp(bytes, { ...input, autoOrient: pages === 1 })
      .timeout({ seconds: maxSeconds })
      .toColourspace('srgb')
      .resize({ width: maxSide, height: maxSide, fit: 'inside', withoutEnlargement: true });
    // sharp would work on 16 bits in Display P3, and take the result for sRGB. For CMYK, this would change the colours.
    if (depth === 'ushort') pixels.pipelineColourspace('srgb');
    // Without any of sharp's keep… calls, profiles and metadata are dropped.
    const encoded = await encoders[extension](pixels).toBuffer();
    return { kind: 'picture', bytes: encoded, extension };
  } catch (error) {
    return { kind: 'invalid', reason: reasonFor(error) };
  }
}

export interface DecodingLimits {
  /** Pictures decoded at the same time, each of another sender. */
  concurrency: number;
  /** Pictures that may wait for their turn; further ones are `busy`. */
  maxWaiting: number;
  /** Those of one sender among them. */
  maxWaitingPerSender: number;
  /** How long a picture may wait, in ms, before it is `busy`. */
  maxWaitMs: number;
}

type Busy = Extract<DecodedPicture, { kind: 'busy' }>;

/**
 * Gives turns to one sender after the other, and never two at once to the same one: however many pictures a sender has,
 * and however long they take, they hold up only that sender's own. Each `enter` that returns nothing must be followed by
 * one `leave`.
 */
function createSenderTurns({ concurrency, maxWaiting, maxWaitingPerSender, maxWaitMs }: DecodingLimits) {
  const running = new Set<string>();
  /** What ends the waiting of each sender's pictures, the senders in the order of their turns. */
  const waiting = new Map<string, ((refusal?: Busy) => void)[]>();

  return {
    /** Waits for a turn; returns why, if there are too many or it does not come in time. */
    enter: async (sender: string): Promise<Busy | undefined> => {
      if (running.size < concurrency && !running.has(sender)) {
        running.add(sender);
        return undefined;
      }
      const own = waiting.get(sender) ?? [];
      if (own.length >= maxWaitingPerSender) return { kind: 'busy', limit: 'sender' };
      if ([...waiting.values()].flat().length >= maxWaiting) return { kind: 'busy', limit: 'all' };
      waiting.set(sender, own);
      return await new Promise((resolve) => {
        const settle = (refusal?: Busy): void => {
          clearTimeout(timer);
          own.splice(own.indexOf(settle), 1);
          if (own.length === 0) waiting.delete(sender);
          resolve(refusal);
        };
        const timer = setTimeout(() => {
          settle({ kind: 'busy', limit: running.has(sender) ? 'sender' : 'all' });
        }, maxWaitMs);
        own.push(settle);
      });
    },
    /** The turn goes directly to the next in line, so that later arrivals cannot overtake it. */
    leave: (sender: string): void => {
      running.delete(sender);
      const own = waiting.get(sender);
      if (own !== undefined) {
        // To the end of the line.
        waiting.delete(sender);
        waiting.set(sender, own);
      }
      const next = [...waiting].find(([other]) => !running.has(other));
      if (next === undefined) return;
      running.add(next[0]);
      next[1][0]?.();
    },
  };
}

/** Creates a `decodePicture` with its own limits. */
export function createPictureDecoder(limits: DecodingLimits) {
  const turns = createSenderTurns(limits);
  return async (bytes: Buffer, sender: string): Promise<DecodedPicture> => {
    const extension = extensionByBytes(bytes);
    if (extension === undefined) return { kind: 'unsupported' };
    const refusal = await turns.enter(sender);
    if (refusal !== undefined) return refusal;
    try {
      return await reencode(bytes, extension);
    } finally {
      turns.leave(sender);
    }
  };
}

/**
 * Decodes an uploaded picture, whatever its bytes, and encodes it again in the same format, so that only its pixels
 * remain: orientation applied, colours in sRGB, the long side at most 2048 pixels, animations kept. Overload is reported
 * within 3 seconds. A decode can take longer than a picture may wait, and cannot be interrupted: that there are two turns
 * on every machine, and one for each sender, keeps a slow picture from holding up those of others.
 */
export const decodePicture = createPictureDecoder({
  concurrency: 2,
  maxWaiting: 16,
  maxWaitingPerSender: 4,
  maxWaitMs: 2500,
});
