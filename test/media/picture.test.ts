import { describe, expect, test } from '@jest/globals';
import { array, assert, asyncProperty, constantFrom, nat, record } from 'fast-check';
import sharp from 'sharp';
import * as decoder from '../../src/media/picture.ts';
import { blackPng, deepPng, frames, gifOfFrames, halves, jpegOfScans } from '../support/requests/pictures.ts';

const decodePicture = async (bytes: Buffer) => await decoder.decodePicture(bytes, 'sender');

const undecodable = { kind: 'invalid', reason: 'cannot be decoded' };

async function decoded(bytes: Buffer): Promise<Extract<decoder.DecodedPicture, { kind: 'picture' }>> {
  const result = await decodePicture(bytes);
  if (result.kind !== 'picture') throw new Error(`not a picture: ${JSON.stringify(result)}`);
  return result;
}

async function colourAt(bytes: Buffer, left: number, top: number): Promise<number[]> {
  const pixel = sharp(bytes).removeAlpha().extract({ left, top, width: 1, height: 1 });
  return [...(await pixel.raw().toBuffer())];
}

const gps = {
  IFD0: { Copyright: 'SECRET-OWNER' },
  IFD3: { GPSLatitude: '51/1 30/1 0/1', GPSLatitudeRef: 'N' },
};
const xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><secret>SECRET-XMP</secret></x:xmpmeta>';

describe('an uploaded file', () => {
  test.each(['jpeg', 'png', 'webp', 'gif'] as const)(
    'of type %s keeps its type and extension',
    async (format) => {
      const result = await decoded(await halves().toFormat(format).toBuffer());
      expect(result.extension).toBe(format === 'jpeg' ? 'jpg' : format);
      expect(await sharp(result.bytes).metadata()).toMatchObject({ format, width: 60, height: 40 });
    },
  );

  test.each([
    ['an SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
    [
      'an SVG behind an XML declaration',
      Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'),
    ],
    ['HTML', Buffer.from('<!doctype html><script>alert(1)</script>')],
    ['a PDF', Buffer.from('%PDF-1.7\n')],
    ['empty', Buffer.alloc(0)],
    ['a single byte', Buffer.from([0xff])],
    ['a RIFF file that is no WebP', Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1')],
    ['a PPM', Buffer.from('P6 1 1 255\n\0\0\0', 'latin1')],
  ])('that is %s is unsupported', async (_, bytes) => {
    expect(await decodePicture(bytes)).toEqual({ kind: 'unsupported' });
  });

  test.each(['tiff', 'avif'] as const)(
    'of type %s is unsupported, although the library could read it',
    async (format) => {
      expect(await decodePicture(await halves().toFormat(format).toBuffer())).toEqual({
        kind: 'unsupported',
      });
    },
  );

  test('of any other type is refused by the library itself, should it get past the check of the first bytes', async () => {
    const tiff = await halves().tiff().toBuffer();
    await expect(sharp(tiff).metadata()).rejects.toThrow('unsupported image format');
    await expect(
      sharp(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')).metadata(),
    ).rejects.toThrow();
  });

  test.each(['jpeg', 'png', 'webp', 'gif'] as const)(
    'of type %s is invalid if truncated, wherever it ends',
    async (format) => {
      const whole = await halves(300, 200).toFormat(format).toBuffer();
      for (const kept of [13, Math.floor(whole.length / 2), whole.length - 20])
        expect(await decodePicture(whole.subarray(0, kept))).toEqual(undecodable);
    },
  );

  describe('that is an animated GIF', () => {
    const animation = async () =>
      await frames([
        [255, 0, 0],
        [0, 255, 0],
        [0, 0, 255],
      ])
        .gif({ delay: [100, 200, 300], reuse: false })
        .toBuffer();

    test('is invalid if truncated, also where its first frames are whole', async () => {
      const whole = await animation();
      const { length } = whole;
      for (const kept of [0.4 * length, 0.7 * length, 0.9 * length, length - 50, length - 2])
        expect(await decodePicture(whole.subarray(0, kept))).toEqual(undecodable);
    });

    test('is invalid if truncated at any byte, except where a frame ends', async () => {
      const whole = gifOfFrames(20, 20, 3);
      const header = 19;
      const frame = (whole.length - header - 1) / 3;
      const accepted: number[] = [];
      for (let kept = 13; kept < whole.length; kept++)
        if ((await decodePicture(whole.subarray(0, kept))).kind !== 'invalid') accepted.push(kept);
      expect(accepted).toEqual([1, 2, 3].map((count) => header + count * frame));
    });

    test.each([
      ['without the trailer, which some programs do not write', (gif: Buffer) => gif.subarray(0, -1)],
      [
        'with zeros in place of the trailer',
        (gif: Buffer) => Buffer.concat([gif.subarray(0, -1), Buffer.alloc(9)]),
      ],
      ['with zeros after the trailer', (gif: Buffer) => Buffer.concat([gif, Buffer.alloc(9)])],
      ['with text after the trailer', (gif: Buffer) => Buffer.concat([gif, Buffer.from('!,;')])],
    ])('is accepted %s', async (_, change) => {
      const { bytes } = await decoded(change(await animation()));
      expect((await sharp(bytes, { animated: true }).metadata()).pages).toBe(3);
    });
  });

  test.each(['\xff\xd8\xff', '\x89PNG\r\n\x1a\n', 'GIF89a', 'RIFF\0\0\0\0WEBP'])(
    'with the first bytes %j and garbage behind them is invalid',
    async (head) => {
      const garbage = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(500, 0xa5)]);
      expect(await decodePicture(garbage)).toEqual(undecodable);
    },
  );

  test('with the wrong scan parameters that some phones write is accepted', async () => {
    const photo = await halves().jpeg().toBuffer();
    const scan = photo.indexOf(Buffer.from([0xff, 0xda]));
    photo[scan + 2 + photo.readUInt16BE(scan + 2) - 2] = 0;
    expect((await decoded(photo)).extension).toBe('jpg');
  });

  test('of exactly 5 MiB is accepted', async () => {
    const size = 5 * 1024 * 1024;
    const bare = blackPng(500, 500).length;
    const padded = blackPng(500, 500, [['prVt', Buffer.alloc(size - bare - 12, 7)]]);
    expect(padded).toHaveLength(size);
    expect((await decoded(padded)).bytes.length).toBeLessThan(5000);
  });
});

describe('the size of a picture', () => {
  const tooLarge = { kind: 'invalid', reason: 'has more than 40,000,000 pixels' };

  test('may be 40,000,000 pixels, and not one row more', async () => {
    expect((await decoded(blackPng(8000, 5000))).extension).toBe('png');
    expect(await decodePicture(blackPng(8000, 5001))).toEqual(tooLarge);
  });

  test('is checked in the header, before a decompression bomb is decoded', async () => {
    const bomb = blackPng(30_000, 30_000);
    expect(bomb.length).toBeLessThan(200_000);
    expect(await decodePicture(bomb)).toEqual(tooLarge);
  });

  test('may be 65,535 pixels on a side, and not one more: wide rows take memory many times their size', async () => {
    expect((await decoded(blackPng(65_535, 2))).extension).toBe('png');
    const tooLong = { kind: 'invalid', reason: 'has a side of more than 65,535 pixels' };
    expect(await decodePicture(blackPng(65_536, 2))).toEqual(tooLong);
    expect(await decodePicture(blackPng(1, 40_000_000))).toEqual(tooLong);
  });

  test('includes all frames of an animation', async () => {
    expect((await decoded(gifOfFrames(400, 400, 250))).extension).toBe('gif');
    expect(await decodePicture(gifOfFrames(400, 400, 251))).toEqual(tooLarge);
  });

  test('may take 500 scans, and not one more: each goes over all pixels, and no time limit ends them', async () => {
    expect((await decoded(jpegOfScans(500))).extension).toBe('jpg');
    expect(await decodePicture(jpegOfScans(501))).toEqual({
      kind: 'invalid',
      reason: 'has more than 500 progressive scans',
    });
  });

  test('is reduced to 2048 pixels on the long side, in proportion', async () => {
    const { bytes } = await decoded(await halves(3000, 1500).jpeg().toBuffer());
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 2048, height: 1024 });
    const tall = await decoded(await halves(100, 4096).webp().toBuffer());
    expect(await sharp(tall.bytes).metadata()).toMatchObject({ width: 50, height: 2048 });
  });

  test('is never enlarged', async () => {
    const { bytes } = await decoded(await halves(2, 1).png().toBuffer());
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 2, height: 1 });
  });
});

describe('re-encoding keeps', () => {
  test.each(['jpeg', 'png', 'webp'] as const)('nothing of a %s but its pixels', async (format) => {
    const tagged = await halves().withExif(gps).withXmp(xmp).withIccProfile('p3').toFormat(format).toBuffer();
    expect(await sharp(tagged).metadata()).toMatchObject({
      exif: expect.any(Uint8Array),
      xmp: expect.any(Uint8Array),
      icc: expect.any(Uint8Array),
    });

    const { bytes } = await decoded(Buffer.concat([tagged, Buffer.from('SECRET-TAIL')]));
    expect(bytes.includes('SECRET')).toBe(false);
    const kept = await sharp(bytes).metadata();
    expect([kept.exif, kept.xmp, kept.icc, kept.iptc, kept.orientation]).toEqual(Array(5).fill(undefined));
  });

  test('nothing of the text chunks of a PNG', async () => {
    const text = Buffer.from('Comment\0SECRET');
    const { bytes } = await decoded(blackPng(10, 10, [['tEXt', text]]));
    expect(bytes.includes('SECRET')).toBe(false);
    expect(bytes.includes('tEXt')).toBe(false);
  });

  test('nothing of a file that is a GIF and an HTML page at once', async () => {
    const gif = await halves().gif().toBuffer();
    const page = '<script>alert(document.domain)</script>';
    const comment = Buffer.concat([
      Buffer.from([0x21, 0xfe, page.length]),
      Buffer.from(page),
      Buffer.from([0]),
    ]);
    const afterColours = 13 + 3 * 2 ** (((gif[10] ?? 0) & 7) + 1);
    const polyglot = Buffer.concat([
      gif.subarray(0, afterColours),
      comment,
      gif.subarray(afterColours),
      Buffer.from(`<html>${page}`),
    ]);
    const { bytes } = await decoded(polyglot);
    expect(bytes.includes('script')).toBe(false);
    expect(bytes.toString('latin1', 0, 6)).toBe('GIF89a');
  });

  test('the orientation, by rotating the pixels', async () => {
    const { bytes } = await decoded(
      await halves().withMetadata({ orientation: 6 }).jpeg({ quality: 100 }).toBuffer(),
    );
    const { width, height, orientation } = await sharp(bytes).metadata();
    expect([width, height, orientation]).toEqual([40, 60, undefined]);
    const [top, bottom] = [await colourAt(bytes, 20, 5), await colourAt(bytes, 20, 55)];
    expect(top[0]).toBeGreaterThan(200);
    expect(bottom[2]).toBeGreaterThan(200);
  });

  test('the colours of another profile, as sRGB', async () => {
    const p3 = await halves().withIccProfile('p3').png().toBuffer();
    expect(await colourAt((await decoded(p3)).bytes, 5, 5)).toEqual([255, 0, 0]);
  });

  test('the colours of a CMYK JPEG, as sRGB', async () => {
    const cmyk = await halves().toColourspace('cmyk').jpeg().toBuffer();
    expect((await sharp(cmyk).metadata()).space).toBe('cmyk');
    const { bytes } = await decoded(cmyk);
    expect(await sharp(bytes).metadata()).toMatchObject({ space: 'srgb', channels: 3 });
    const [red = 0, , blue = 255] = await colourAt(bytes, 5, 5);
    expect(red).toBeGreaterThan(blue + 100);
  });

  test('a 16-bit PNG, with 8 bits', async () => {
    const deep = await halves().toColourspace('rgb16').png().toBuffer();
    expect((await sharp(deep).metadata()).depth).toBe('ushort');
    expect((await sharp((await decoded(deep)).bytes).metadata()).depth).toBe('uchar');
  });

  test('the colours of a 16-bit PNG with a profile, as sRGB', async () => {
    const srgb = await decoded(await deepPng([200, 100, 50], 'srgb'));
    expect(await colourAt(srgb.bytes, 4, 4)).toEqual([200, 100, 50]);
    const p3 = await decoded(await deepPng([200, 100, 50], 'p3'));
    expect(await colourAt(p3.bytes, 4, 4)).toEqual([215, 93, 32]);
  });

  test('transparency', async () => {
    const glass = sharp({
      create: { width: 9, height: 9, channels: 4, background: { r: 255, g: 0, b: 0, alpha: 0.5 } },
    });
    for (const format of ['png', 'webp'] as const) {
      const { bytes } = await decoded(await glass.clone().toFormat(format).toBuffer());
      const pixel = await sharp(bytes).extract({ left: 4, top: 4, width: 1, height: 1 }).raw().toBuffer();
      expect(pixel[3]).toBe(128);
    }
  });

  test.each(['gif', 'webp'] as const)(
    'the frames of an animated %s, their times and repeats',
    async (format) => {
      const colours: [number, number, number][] = [
        [255, 0, 0],
        [0, 255, 0],
        [0, 0, 255],
      ];
      const animation = await frames(colours)
        .toFormat(format, { delay: [100, 200, 300], loop: 2 })
        .toBuffer();
      const { bytes } = await decoded(animation);
      expect(await sharp(bytes, { animated: true }).metadata()).toMatchObject({
        format,
        pages: 3,
        pageHeight: 20,
        delay: [100, 200, 300],
        loop: 2,
      });
      const third = await sharp(bytes, { page: 2 }).removeAlpha().raw().toBuffer();
      expect(third[2]).toBeGreaterThan(200);
    },
  );

  test('the frames of a large animation, each reduced in size', async () => {
    const large = await frames(
      [
        [255, 0, 0],
        [0, 0, 255],
      ],
      2500,
    )
      .gif({ effort: 1 })
      .toBuffer();
    const { bytes } = await decoded(large);
    expect(await sharp(bytes, { animated: true }).metadata()).toMatchObject({
      width: 2048,
      pageHeight: 2048,
      pages: 2,
    });
  });
});

test('a file damaged anywhere never breaks the decoder, and what is decoded is always whole', async () => {
  const wholes = await Promise.all(
    (['jpeg', 'png', 'webp', 'gif'] as const).map(async (format) => halves().toFormat(format).toBuffer()),
  );
  const damage = array(record({ at: nat(2000), to: nat(255) }), { minLength: 1, maxLength: 8 });
  await assert(
    asyncProperty(constantFrom(...wholes), damage, async (whole, damages) => {
      const bytes = Buffer.from(whole);
      for (const { at, to } of damages) bytes[at % bytes.length] = to;
      const result = await decodePicture(bytes);
      if (result.kind === 'picture') await sharp(result.bytes, { animated: true, failOn: 'warning' }).stats();
      else expect(['invalid', 'unsupported']).toContain(result.kind);
    }),
    { numRuns: 300 },
  );
});

describe('pictures that wait to be decoded', () => {
  const limits = { concurrency: 1, maxWaiting: 2, maxWaitingPerSender: 2, maxWaitMs: 60_000 };
  const large = async (): Promise<Buffer> => await halves(1000, 1000).png().toBuffer();
  const refused = (limit: 'sender' | 'all') => ({ kind: 'busy', limit });

  test('are decoded in turn, and those beyond the limit are refused as busy', async () => {
    const decode = decoder.createPictureDecoder(limits);
    const picture = await large();
    const senders = ['a', 'b', 'c', 'd', 'e'];
    const results = await Promise.all(senders.map(async (sender) => await decode(picture, sender)));
    expect(results.slice(0, 3).map(({ kind }) => kind)).toEqual(['picture', 'picture', 'picture']);
    expect(results.slice(3)).toEqual([refused('all'), refused('all')]);
    expect((await decode(picture, 'd')).kind).toBe('picture');
  });

  test('of one sender are refused beyond their own limit, which leaves places to others', async () => {
    const decode = decoder.createPictureDecoder({ ...limits, maxWaitingPerSender: 1 });
    const picture = await large();
    const results = await Promise.all(
      ['a', 'a', 'a', 'b'].map(async (sender) => await decode(picture, sender)),
    );
    expect(results.map(({ kind }) => kind)).toEqual(['picture', 'picture', 'busy', 'picture']);
    expect(results[2]).toEqual(refused('sender'));
    expect((await decode(picture, 'a')).kind).toBe('picture');
  });

  test('of one sender never keep those of others from being decoded', async () => {
    const picture = await large();
    const many = Array.from({ length: 17 }, async () => await decoder.decodePicture(picture, 'many'));
    expect((await decoder.decodePicture(picture, 'one')).kind).toBe('picture');
    expect(await Promise.all(many)).toContainEqual(refused('sender'));
  });

  /** The senders of these pictures, in the order in which they are decoded. */
  async function orderOf(senders: string[], concurrency: number): Promise<string[]> {
    const decode = decoder.createPictureDecoder({
      ...limits,
      concurrency,
      maxWaiting: 9,
      maxWaitingPerSender: 9,
    });
    const picture = await large();
    const order: string[] = [];
    await Promise.all(
      senders.map(async (sender) => decode(picture, sender.charAt(0)).then(() => order.push(sender))),
    );
    return order;
  }

  test('finish in the order in which they came', async () => {
    expect(await orderOf(['a1', 'a2', 'a3'], 1)).toEqual(['a1', 'a2', 'a3']);
    expect(await orderOf(['a1', 'b1', 'c1'], 1)).toEqual(['a1', 'b1', 'c1']);
  });

  test('are taken from one sender after the other, however many one has', async () => {
    expect(await orderOf(['a1', 'a2', 'a3', 'b1', 'b2', 'c1'], 1)).toEqual([
      'a1',
      'b1',
      'c1',
      'a2',
      'b2',
      'a3',
    ]);
  });

  test('are decoded one at a time for each sender, so that slow ones leave a turn to others', async () => {
    const decode = decoder.createPictureDecoder({ ...limits, concurrency: 2 });
    const slow = gifOfFrames(400, 400, 100);
    const tiny = blackPng(1, 1);
    const order: string[] = [];
    await Promise.all([
      decode(slow, 'a').then(() => order.push('a1')),
      decode(tiny, 'a').then(() => order.push('a2')),
      decode(tiny, 'b').then(() => order.push('b1')),
    ]);
    expect(order).toEqual(['b1', 'a1', 'a2']);
  });

  test('are decoded even if one before them cannot be', async () => {
    const decode = decoder.createPictureDecoder(limits);
    const picture = await large();
    const results = await Promise.all([decode(picture.subarray(0, 60), 'a'), decode(picture, 'a')]);
    expect(results.map(({ kind }) => kind)).toEqual(['invalid', 'picture']);
  });

  test('are refused as busy after a time, and leave their place to others', async () => {
    const decode = decoder.createPictureDecoder({ ...limits, maxWaitMs: 1 });
    const running = decode(gifOfFrames(400, 400, 100), 'a');
    const waiting = [decode(blackPng(1, 1), 'a'), decode(blackPng(1, 1), 'b')];
    expect(await Promise.all(waiting)).toEqual([refused('sender'), refused('all')]);
    expect((await running).kind).toBe('picture');
    expect((await decode(blackPng(1, 1), 'b')).kind).toBe('picture');
  });
});
