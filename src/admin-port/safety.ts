import type { RequestHandler } from 'express';
import helmet from 'helmet';
import { isLoopback, namesLoopback } from './loopback.ts';
import { tellOperator } from './problem.ts';

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
  // A stricter one would make browsers send "Origin: null" with our own forms.
  referrerPolicy: { policy: 'same-origin' },
  // The port may share its host name with services that speak plain HTTP.
  strictTransportSecurity: false,
});

/** What browsers may do with the answers: run and show our own files, keep nothing, frame nothing. */
export const protectBrowsers: RequestHandler = (request, response, next) => {
  response.setHeader('Cache-Control', 'no-store');
  browserRules(request, response, next);
};

/**
 * Without a token only this machine may call, and only by a loopback name and the port's own number: 421 for any
 * other name (DNS rebinding), 403 where the connection came in by another address.
 */
export const onlyThisMachine: RequestHandler = (request, response, next) => {
  const { localAddress = '', localPort = 0 } = request.socket;
  if (!isLoopback(localAddress)) {
    tellOperator(response, {
      status: 403,
      title: 'This port is not open',
      detail: 'Without ADMIN_TOKEN the admin port answers this machine only.',
      remedy: 'Set ADMIN_TOKEN, or ADMIN_HOST=127.0.0.1.',
    });
  } else if (!namesLoopback(request.headers.host, localPort)) {
    tellOperator(response, {
      status: 421,
      title: 'This is not the name of this port',
      detail: 'Without ADMIN_TOKEN the admin port answers to loopback names and its own port number only.',
      remedy: `Open http://127.0.0.1:${localPort}/ (a tunnel must keep the port number), or set ADMIN_TOKEN.`,
    });
  } else next();
};

/**
 * Pages of other sites may lead people here, and nothing else: whatever else they make a browser send is 403, so
 * that they can neither change anything (CSRF) nor embed or time an answer.
 */
export const refuseOtherSites: RequestHandler = (request, response, next) => {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest, origin } = request.headers;
  const reads = request.method === 'GET' || request.method === 'HEAD';
  const isOwn =
    site === undefined ? origin === undefined || hostOf(origin) === request.headers.host : ownSites.has(site);
  const isVisit = reads && mode === 'navigate' && dest === 'document';
  if (isOwn || isVisit) next();
  else {
    tellOperator(response, {
      status: 403,
      title: 'Another site sent this request',
      detail: 'The admin port takes requests from its own pages and from machines, not from other sites.',
      remedy: 'Use the page at this very address, or send a Bearer token without a browser.',
    });
  }
};

const ownSites = new Set<unknown>(['same-origin', 'none']);

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
