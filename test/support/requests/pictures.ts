import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';

/** Left half red, right half blue, so that a wrong orientation shows. */
export function halves(width = 60, height = 40): Sharp {
  const pixels = Buffer.alloc(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel += 1)
    pixels[pixel * 3 + (pixel % width < width / 2 ? 0 : 2)] = 255;
  return sharp(pixels, { raw: { width, height, channels: 3 } });
}

/** A small PNG. */
export const redPng = (): Promise<Buffer> =>
  sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
    .png()
    .toBuffer();

/** Frames of plain colours, with a delay of their own each, played twice. */
export function frames(colours: [number, number, number][], side = 20): Sharp {
  const pixels = Buffer.concat(colours.map((colour) => Buffer.alloc(side * side * 3, Buffer.from(colour))));
  return sharp(pixels, {
    raw: { width: side, height: side * colours.length, channels: 3, pageHeight: side },
  });
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

/** A black PNG of any size in a few kilobytes, with further chunks if wanted. */
export function blackPng(width: number, height: number, extra: [type: string, data: Buffer][] = []): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([1, 0, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    ...extra.map(([type, data]) => chunk(type, data)),
    chunk('IDAT', deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A PNG of one colour with 16 bits a channel, and a colour profile. */
export async function deepPng(
  [red, green, blue]: [number, number, number],
  profile: 'srgb' | 'p3',
): Promise<Buffer> {
  const { icc = Buffer.alloc(0) } = await sharp(
    await halves().withIccProfile(profile).png().toBuffer(),
  ).metadata();
  const pixel = [red, red, green, green, blue, blue];
  const side = 8;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([16, 2, 0, 0, 0], 8);
  const rows = Array.from({ length: side }, () => [0, ...Array.from({ length: side }, () => pixel).flat()]);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('iCCP', Buffer.concat([Buffer.from('profile\0\0', 'latin1'), deflateSync(icc)])),
    chunk('IDAT', deflateSync(Buffer.from(rows.flat()))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A GIF of so many frames, each the whole canvas by its size but one pixel by its bytes. */
export function gifOfFrames(width: number, height: number, count: number): Buffer {
  const screen = Buffer.from('GIF89a\0\0\0\0\x80\0\0\0\0\0\xff\xff\xff', 'latin1');
  screen.writeUInt16LE(width, 6);
  screen.writeUInt16LE(height, 8);
  const frame = Buffer.from('\x21\xf9\x04\0\x0a\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0', 'latin1');
  return Buffer.concat([screen, ...Array.from({ length: count }, () => frame), Buffer.from([0x3b])]);
}

/** A JPEG of one black block, in so many progressive scans. */
export function jpegOfScans(count: number): Buffer {
  const huffmanTable = (number: string) => `ffc40014${number}01${'00'.repeat(16)}`;
  const scan = (coefficients: string) => `ffda0008010100${coefficients}007f`;
  return Buffer.from(
    [
      'ffd8',
      `ffdb004300${'01'.repeat(64)}`,
      'ffc2000b080008000801011100',
      huffmanTable('00'),
      huffmanTable('10'),
      scan('0000'),
      scan('013f').repeat(count - 1),
      'ffd9',
    ].join(''),
    'hex',
  );
}
