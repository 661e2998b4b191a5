import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { decodePicture } from '../../src/media/picture.ts';
import { MediaUnavailableError, newPictureName, openFolder, readWhole } from '../../src/media/store.ts';
import { openMediaStore } from '../../src/media/open.ts';
import { patiently } from './patiently.ts';
import { redPng } from '../support/requests/pictures.ts';

let dataDir = '';
const open = async () => openMediaStore(undefined, { dataDir });
const files = async () => readdir(path.join(dataDir, 'media'));

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'media-folder-'));
});
afterEach(async () => {
  await rm(dataDir, { recursive: true });
});

test('opening creates the folder and leaves nothing in it', async () => {
  await open();
  expect(await files()).toEqual([]);
});

test('a process killed while saving leaves no truncated picture', async () => {
  const size = 3_000_000;
  const script = `
    import { openMediaStore } from './src/media/open.ts';
    import { newPictureName } from './src/media/store.ts';
    const store = await openMediaStore(undefined, { dataDir: ${JSON.stringify(dataDir)} });
    for (;;) { await store.save(newPictureName('png'), Buffer.alloc(${size}, 'p')); process.stdout.write('.'); }`;
  const saving = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(saving.stdout, 'data');
  saving.kill('SIGKILL');
  await once(saving, 'exit');

  const pictures = (await files()).filter((name) => name.endsWith('.png'));
  expect(pictures.length).toBeGreaterThan(0);
  for (const name of pictures) expect(await readFile(path.join(dataDir, 'media', name))).toHaveLength(size);
});

test('a file left half-saved by a crash is removed at the next start, one that another instance is saving is not', async () => {
  const folder = path.join(dataDir, 'media');
  const picture = newPictureName('jpg');
  await mkdir(folder);
  for (const name of ['.crashed.tmp', '.saving-now.tmp', picture, '.keep', 'notes.tmp'])
    await writeFile(path.join(folder, name), 'x');
  const longAgo = new Date(Date.now() - 120_000);
  for (const name of ['.crashed.tmp', picture, '.keep', 'notes.tmp'])
    await utimes(path.join(folder, name), longAgo, longAgo);
  await open();
  expect((await files()).toSorted()).toEqual(['.keep', '.saving-now.tmp', 'notes.tmp', picture].toSorted());
});

test('reading a picture in many parts causes no warning', () => {
  const script = `
    import { openMediaStore } from './src/media/open.ts';
    import { newPictureName } from './src/media/store.ts';
    const store = await openMediaStore(undefined, { dataDir: ${JSON.stringify(dataDir)} });
    const name = newPictureName('png');
    await store.save(name, Buffer.alloc(1000));
    const picture = await store.open(name, 10);
    for (let from = 10; from < 1000; from += 10) await picture.readFrom(from, 10);
    await picture.close();`;
  const options = ['--import', 'tsx', '--input-type=module', '--eval', script];
  const { status, stderr } = spawnSync(process.execPath, options, { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});

test('removing a picture removes its half-written file too', async () => {
  const store = await open();
  const name = newPictureName('png');
  await writeFile(path.join(dataDir, 'media', `.${name}.tmp`), 'x');
  await store.remove(name);
  expect(await files()).toEqual([]);
});

test('a failed save leaves nothing behind and reports the reason', async () => {
  const store = await open();
  const name = newPictureName('jpg');
  await mkdir(path.join(dataDir, 'media', name));
  const saving = store.save(name, Buffer.from('x'));
  await expect(saving).rejects.toThrow(MediaUnavailableError);
  await expect(saving).rejects.toThrow(/^Cannot write to the media folder .*\(E[A-Z]+\)\.$/);
  expect(await files()).toEqual([name]);
});

test('a folder that has vanished is reported when saving, and reads as empty', async () => {
  const store = await open();
  await rm(path.join(dataDir, 'media'), { recursive: true });
  await expect(store.save(newPictureName('jpg'), Buffer.from('x'))).rejects.toThrow('ENOENT');
  expect(await readWhole(store, newPictureName('jpg'))).toBeUndefined();
});

test('while the file system does not answer, operations fail in time, and pictures are still decoded', async () => {
  const media = path.join(dataDir, 'media');
  const store = await patiently(() => openFolder(media, 100));
  // Opening a pipe waits for a writer, as opening a file waits for a file server that is away.
  const pipes = Array.from({ length: 6 }, () => newPictureName('png'));
  // A name may begin with a dash.
  spawnSync('mkfifo', ['--', ...pipes], { cwd: media });
  const openings = pipes.map((name) => store.open(name, 1));
  for (const opening of openings)
    await expect(opening).rejects.toThrow(/^Cannot read from .*\(TimeoutError\)/);
  expect(await decodePicture(await redPng(), 'sender')).toMatchObject({ kind: 'picture' });

  // Opens each for reading and writing, and so lets those go on that wait for a writer.
  spawnSync('sh', ['-c', `for pipe in ${pipes.join(' ')}; do : <>"./$pipe"; done`], { cwd: media });
  const name = newPictureName('png');
  await patiently(() => store.save(name, Buffer.from('pixels')));
  expect((await patiently(() => readWhole(store, name)))?.bytes.toString()).toBe('pixels');
});

test('a folder that cannot be written to is refused at start, in one line with the remedy', async () => {
  await writeFile(path.join(dataDir, 'media'), 'a file in its place');
  // Linux lets nobody make a folder under /proc, not even root.
  for (const url of [undefined, 'file:///proc/nobody/media']) {
    await expect(openMediaStore(url, { dataDir })).rejects.toThrow(
      /^MEDIA_URL: the folder \S+ cannot be written \(E[A-Z]+\); let [^\n]*$/,
    );
  }
});
