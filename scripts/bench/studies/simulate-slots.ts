import { Command, InvalidArgumentError } from 'commander';
import { organizationBase } from '../../../src/redis/keys.ts';
import { wholeNumber } from '../../../src/cli/command-line.ts';
import { print, runTool } from '../../program.ts';

/*
 * Compared are slots dealt out in equal ranges, as `redis-cli --cluster create` does; whole slots moved to even out
 * their weight, as an operator can; and, to see whether it would be worth building, the largest organizations split
 * over several slots on top.
 */

const program = new Command('npx tsx scripts/bench/studies/simulate-slots.ts')
  .description(
    "Simulate how unevenly organizations load the masters of a cluster if their sizes follow Zipf's law, as those of customers do.",
  )
  .argument('[organizations]', 'number of organizations', wholeNumber(1), 10_000)
  .argument('[s]', 'the n-th largest has 1/n^s of the largest', exponent, 1)
  .action(study);
const slotCount = 16_384;
const splitInto = 16;

function study(organizations: number, s: number): void {
  const sizes = Array.from({ length: organizations }, (_, rank) => (rank + 1) ** -s);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const shares = sizes.map((size) => size / total);

  const whole = new Float64Array(slotCount);
  const split = new Float64Array(slotCount);
  for (const [rank, share] of shares.entries()) {
    add(whole, `organization-${rank}`, share);
    const parts = rank < 10 ? splitInto : 1;
    for (let part = 0; part < parts; part++) add(split, `organization-${rank}/${part}`, share / parts);
  }

  print(
    `${organizations} organizations, s = ${s}: the largest has ${percent(shares[0] ?? 0)} of all, ` +
      `the ten largest ${percent(shares.slice(0, 10).reduce((sum, share) => sum + share, 0))}\n`,
  );
  print(
    "The fullest master, as a multiple of an even share (1.00), and what of the cluster's power is usable:",
  );
  print('masters  equal ranges  slots evened out  ten largest split in 16, slots evened out');
  for (const masters of [3, 6, 12, 24, 48, 96]) {
    const columns = [equalRanges(whole, masters), evenedOut(whole, masters), evenedOut(split, masters)];
    const cells = columns.map(
      (fullest) => `${(fullest * masters).toFixed(2)} (${percent(1 / (fullest * masters))})`,
    );
    print(
      `${String(masters).padStart(7)}  ${cells.map((cell, n) => cell.padEnd([12, 16, 0][n] ?? 0)).join('  ')}`,
    );
  }
}

function exponent(text: string): number {
  if (!/^\d{1,9}(\.\d+)?$/.test(text)) {
    throw new InvalidArgumentError('It must be a number of at least 0, such as 1.2.');
  }
  return Number(text);
}

/** The share of the fullest master. */
function equalRanges(slots: Float64Array, masters: number): number {
  const loads = new Float64Array(masters);
  for (const [slot, share] of slots.entries()) {
    const master = Math.floor((slot * masters) / slotCount);
    loads[master] = (loads[master] ?? 0) + share;
  }
  return Math.max(...loads);
}

/** The same, when every slot, the heaviest first, goes to the master that has least yet. */
function evenedOut(slots: Float64Array, masters: number): number {
  const loads = new Float64Array(masters);
  for (const share of slots.toSorted().toReversed()) {
    const least = loads.indexOf(Math.min(...loads));
    loads[least] = (loads[least] ?? 0) + share;
  }
  return Math.max(...loads);
}

function add(slots: Float64Array, organization: string, share: number): void {
  const slot = slotOf(organizationBase('pb:', organization));
  slots[slot] = (slots[slot] ?? 0) + share;
}

/** Redis Cluster specification, "Key distribution model": CRC-16/XMODEM of the hash tag. */
function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(/\{([^}]+)\}/.exec(key)?.[1] ?? key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    crc &= 0xffff;
  }
  return crc % slotCount;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

await runTool(program);
