import type { RequestHandler } from 'express';
import helmet from 'helmet';
import { isLoopback, namesLoopback, type TargetCheck } from '../lib/hosts.ts';
import { sendProblem } from './problem.ts';

const self = ["'self'"];
const none = ["'none'"];

const browserRules = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: none,
      scriptSrc: self,
      styleSrc: self,
      imgSrc: self,
      connectSrc: self,
      formAction: self,
      baseUri: none,
      frameAncestors: none,
    },
  },
  xFrameOptions: { action: 'deny' },
  // With a stricter policy, browsers would send "Origin: null" with our own forms.
  referrerPolicy: { policy: 'same-origin' },
  // The port may share its host name with services that speak plain HTTP.
  strictTransportSecurity: false,
});

/** Headers that keep browsers from caching or framing answers, and from loading anything but our own files. */
export const protectBrowsers: RequestHandler = (request, response, next) => {
  response.setHeader('Cache-Control', 'no-store');
  browserRules(request, response, next);
};

/** Refuses a request without a valid Host header with 400. */
export const requireTarget: RequestHandler = (_request, response, next) => {
  const { targetFault } = response.locals as TargetCheck;
  if (targetFault === undefined) next();
  else {
    sendProblem(response, {
      status: 400,
      title: 'Malformed request',
      detail: `The request has ${targetFault}.`,
      remedy: 'Send HTTP/1.1 with one Host header, the address of the admin port.',
    });
  }
};

/**
 * Without a token, only this machine may call, and only by a loopback name with the right port: 421 for any other
 * name (DNS rebinding), 403 for a connection to another address.
 */
export const onlyThisMachine: RequestHandler = (request, response, next) => {
  const { localAddress = '', localPort = 0 } = request.socket;
  if (!isLoopback(localAddress)) {
    sendProblem(response, {
      status: 403,
      title: 'The admin port is not public',
      detail: 'Without ADMIN_TOKEN, the admin port only answers requests from this machine.',
      remedy: 'Set ADMIN_TOKEN, or ADMIN_HOST=127.0.0.1.',
    });
  } else if (!namesLoopback(request.headers.host, localPort)) {
    sendProblem(response, {
      status: 421,
      title: 'Misdirected request',
      detail: 'Without ADMIN_TOKEN, the admin port only answers to loopback names with its own port number.',
      remedy: `Open http://127.0.0.1:${localPort}/ (a tunnel must keep the port number), or set ADMIN_TOKEN.`,
    });
  } else next();
};

/**
 * Other sites may only link here. Any other request from them is 403, so that they can neither change anything (CSRF)
 * nor embed or time an answer.
 */
export const refuseOtherSites: RequestHandler = (request, response, next) => {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest, origin } = request.headers;
  const reads = request.method === 'GET' || request.method === 'HEAD';
  const isOwn =
    site === undefined ? origin === undefined || hostOf(origin) === request.headers.host : ownSites.has(site);
  const isLink = reads && mode === 'navigate' && dest === 'document';
  if (isOwn || isLink) next();
  else {
    sendProblem(response, {
      status: 403,
      title: 'Request from another site',
      detail: 'The admin port accepts requests from its own pages and from programs, not from other sites.',
      remedy: 'Open the page at this address, or send a Bearer token from a program.',
    });
  }
};

const ownSites = new Set<unknown>(['same-origin', 'none']);

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
