import express, { type Express, type RequestHandler } from 'express';
import { contractText } from '../contract/document.ts';
import { problem, ProblemError } from '../contract/problems.ts';
import type { MediaUrl } from '../contract/views.ts';
import { deprecationHeaderNames } from '../deprecation/policy/headers.ts';
import type { DeprecationPolicy } from '../deprecation/policy/policy.ts';
import { answerErrors, page } from './respond.ts';
import { answered, beginCall, callOf, type AccessRecord } from './request-context.ts';
import { allowOrigins, contractHandler, isContractPath, readOnlyRouter } from './pipeline.ts';
import type { AuthenticationOptions } from './authentication.ts';
import { banUsernames, overwriteDenylist, removeDeniedUsernames } from './denylist/denylist.ts';
import { documentation } from './docs/documentation.ts';
import { getProfile } from './profile/get-profile.ts';
import { livez, readyz } from './health.ts';
import { createJsonReader } from './middleware/json-body.ts';
import { createListReader } from './denylist/list-body.ts';
import { shedLoad } from './middleware/load-shedding.ts';
import type { Pictures } from '../media/lifecycle.ts';
import { putProfile } from './profile/put-profile.ts';
import { refuseWhenGone } from './middleware/deprecation-gate.ts';
import type { Log } from '../log.ts';
import { serveMedia } from './media.ts';
import type { MediaStore } from '../media/store.ts';

export interface AppOptions extends AuthenticationOptions {
  log: Log;
  media: MediaStore;
  mediaUrl: MediaUrl;
  pictures: Pictures;
  corsOrigins: readonly string[];
  maxListBytes: number;
  /** The deprecation policy in force now, and the headers that every answer of the contract carries for it. */
  deprecation: () => { policy: DeprecationPolicy; headers: readonly string[] };
  /** Told of every request of the contract, once it is answered or its client has gone. */
  onAnswered: (call: AccessRecord) => void;
  isDraining: () => boolean;
  arePicturesAvailable: () => boolean;
}

/** A profile's JSON body is small; whatever is larger is no profile. */
const maxProfileBytes = 64 * 1024;

/** Requests of the contract that one process has under way at most. */
const maxUnderWay = 2000;

const exposedHeaders = [
  ...deprecationHeaderNames,
  'X-Request-Id',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'WWW-Authenticate',
  'Allow',
];

/** The public face: the contract first, since that is what nearly everybody wants; then the rest. */
export function createApp(options: AppOptions): Express {
  const { store, isDraining, arePicturesAvailable, corsOrigins, organizationHeader } = options;
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', false);

  app.use(begin(options));
  if (corsOrigins.length > 0) app.use(allowOrigins(corsOrigins, organizationHeader, exposedHeaders));
  app.use(contractFace(options));
  app.use(
    readOnlyRouter({
      '/livez': livez,
      '/readyz': readyz({ store, isDraining, arePicturesAvailable }),
      '/openapi.yaml': page('application/yaml; charset=utf-8', contractText),
      '/docs/': documentation(() => options.deprecation().policy),
      '/media/:file': serveMedia(options.media),
    }),
  );
  app.use((request) => {
    throw new ProblemError(problem('not-found', `Nothing answers ${request.method} at this path.`));
  });
  app.use(answerErrors);
  return app;
}

function contractFace(options: AppOptions): RequestHandler {
  const withLists = { ...options, read: createListReader(options.maxListBytes) };
  const answer = contractHandler(
    {
      getProfile: getProfile(options),
      putProfile: putProfile({ ...options, readJson: createJsonReader(maxProfileBytes) }),
      banUsernames: banUsernames(withLists),
      removeDeniedUsernames: removeDeniedUsernames(withLists),
      overwriteDenylist: overwriteDenylist(withLists),
    },
    [refuseWhenGone(() => options.deprecation().policy, options), shedLoad(maxUnderWay)],
  );
  return (request, response, next) => {
    const call = callOf(response);
    if (!isContractPath(request.path)) {
      response.setHeader('X-Request-Id', call.requestId);
      next();
      return;
    }
    call.headers = [
      'X-Request-Id',
      call.requestId,
      'Cache-Control',
      'private, no-store',
      ...options.deprecation().headers,
    ];
    return answer(request, response, next);
  };
}

/** Gives every request its id, and tells the log and the ledger what became of it. */
function begin({ log, onAnswered }: AppOptions): RequestHandler {
  const logged = log.isLevelEnabled('http');
  return (_request, response, next) => {
    const call = beginCall(response);
    response.on('close', () => {
      const done = answered(call, response);
      if (done.operation !== undefined) onAnswered(done);
      if (done.status === 500) log.error('answered', describe(done));
      else if (done.status > 500) log.warn('answered', describe(done));
      else if (logged) log.http('answered', describe(done));
    });
    next();
  };
}

/** What the log may say of a call. An organization is named only once a key has proven it. */
function describe(done: AccessRecord): object {
  const { requestId, operation, organizationId, caller, status, seconds, failure } = done;
  return {
    requestId,
    operation,
    status,
    ms: Math.round(seconds * 10_000) / 10,
    ...(caller !== undefined && { organizationId, keyId: caller.keyId }),
    ...(failure !== undefined && { failure }),
  };
}
