import { isIP } from 'node:net';
import type { RateLimit } from './api/middleware/rate-limit.ts';
import { availableCpus } from './lib/system/cpu-quota.ts';

/** How the value of a variable is written. */
export interface Format<Value> {
  /** Undefined for a text that is not in this format. */
  parse: (text: string) => Value | undefined;
  /** Follows "NAME must be". */
  expected: string;
}

/** The value of a variable, without spaces around it; an empty variable counts as unset. */
export function textOf(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return env[name]?.trim() || undefined;
}

/** An address, or a list of them, without what may be a user and a password, however badly it is written. */
export function withoutCredentials(text: string): string {
  return text.replace(/^(\w+:\/\/)?.*@/s, '$1…@');
}

export const anyText: Format<string> = { parse: (text) => text, expected: 'a text' };

export function oneOf(texts: readonly string[]): Format<string> {
  return {
    parse: (text) => (texts.includes(text) ? text : undefined),
    expected: `one of ${texts.join(', ')}`,
  };
}

export function wholeNumber(least: number, greatest: number, unit?: string): Format<number> {
  return {
    parse: (text) => {
      const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
      return value >= least && value <= greatest ? value : undefined;
    },
    expected: `a number ${unit === undefined ? '' : `of ${unit} `}from ${least} to ${greatest}`,
  };
}

export const portNumber: Format<number> = { ...wholeNumber(0, 65_535), expected: 'a port number' };

const maxWorkers = 128;
const workers = wholeNumber(1, maxWorkers);

export const workerCount: Format<number> = {
  parse: (text) => (text === 'auto' ? Math.min(availableCpus(), maxWorkers) : workers.parse(text)),
  expected: `auto, or ${workers.expected}`,
};

export const flag: Format<boolean> = {
  parse: (text) => {
    if (/^(1|true|yes)$/i.test(text)) return true;
    return /^(0|false|no)$/i.test(text) ? false : undefined;
  },
  expected: '1 or 0',
};

export const keyPrefix: Format<string> = {
  // Redis Cluster would take text in braces for the hash tag, which is the organization.
  parse: (text) => (/^[^{}\s\p{Cc}]+$/u.test(text) ? text : undefined),
  expected: 'text without braces, spaces or control characters',
};

/** RFC 9110 §5.6.2. */
const token = /^[\w!#$%&'*+.^`|~-]+$/;

/** Request headers that already have another meaning, and those that a proxy drops. */
const takenHeaders = new Set([
  'x-api-key',
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'te',
  'trailer',
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'upgrade',
  'expect',
  'origin',
  'cookie',
  'set-cookie',
  'user-agent',
  'via',
  'x-forwarded-for',
  'x-request-id',
]);

export const headerName: Format<string> = {
  parse: (text) => {
    const name = text.toLowerCase();
    return token.test(name) && !takenHeaders.has(name) ? name : undefined;
  },
  expected: 'the name of an HTTP header without another meaning',
};

export const headerNames: Format<string[]> = {
  parse: (text) => {
    const names = listOf(text.toLowerCase());
    return names.every((name) => token.test(name)) ? names : undefined;
  },
  expected: 'a comma-separated list of header names',
};

export const baseUrl: Format<string> = {
  parse: (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
    const { username, password, href } = url;
    // A query or fragment counts even if it is empty: a path is added to the address.
    return username + password === '' && !/[?#]/.test(href) ? href.replace(/\/+$/, '') : undefined;
  },
  expected: 'an http or https URL without credentials or a query',
};

export const origins: Format<string[]> = {
  parse: (text) => {
    const list = listOf(text);
    return list.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)
      ? list
      : undefined;
  },
  expected: 'a comma-separated list of origins such as https://example.com',
};

/** As Express accepts them, except `true`, which would trust any client's X-Forwarded-For. */
export const trustedProxies: Format<number | string[]> = {
  parse: (text) => {
    if (/^\d{1,2}$/.test(text)) return Number(text);
    const list = listOf(text);
    return list.every(isProxy) ? list : undefined;
  },
  expected:
    'a number of proxies, or a comma-separated list of their addresses and subnets, loopback, linklocal or uniquelocal',
};

function isProxy(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true;
  const [address = '', bits = '1', ...rest] = text.split('/');
  const most = { 4: 32, 6: 128 }[isIP(address)] ?? 0;
  // Express has no subnet of all addresses.
  return rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= most;
}

export const rateLimit: Format<RateLimit> = {
  parse: (text) => {
    const match = /^([1-9]\d{0,8})(?:\/([1-9]\d{0,5}))?$/.exec(text);
    return match === null ? undefined : { requests: Number(match[1]), seconds: Number(match[2] ?? 60) };
  },
  expected: 'REQUESTS/SECONDS such as 600/60',
};

export const failureLimit: Format<RateLimit | 'none'> = {
  parse: (text) => (text === '0' ? 'none' : rateLimit.parse(text)),
  expected: 'FAILURES/SECONDS such as 600/60, or 0 for no limit',
};

function listOf(text: string): string[] {
  return text.split(',').map((item) => item.trim());
}
