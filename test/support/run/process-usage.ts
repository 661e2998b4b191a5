import { readFileSync } from 'node:fs';

/** The processor time, in seconds, of a process and of those it has started; undefined where there is no /proc. */
export function cpuSeconds(pid: number): number | undefined {
  return sum(family(pid).map(cpuSecondsOfOne));
}

/** The resident memory, in MiB, of a process and of those it has started; undefined where there is no /proc. */
export function residentMiB(pid: number): number | undefined {
  return sum(family(pid).map(residentMiBOfOne));
}

function family(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`) ?? '';
  return [pid, ...(children.match(/\d+/g) ?? []).map(Number)];
}

function sum(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length < values.length ? undefined : known.reduce((total, value) => total + value, 0);
}

/** From Linux' /proc, whose ticks are hundredths of a second. */
function cpuSecondsOfOne(pid: number): number | undefined {
  const fields = read(`/proc/${pid}/stat`)?.split(') ')[1]?.split(' ');
  return fields && (Number(fields[11]) + Number(fields[12])) / 100;
}

function residentMiBOfOne(pid: number): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1024);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
