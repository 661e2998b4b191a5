import cors from 'cors';
import express, { type Express, type RequestHandler } from 'express';
import { deployedContract } from '../contract/document.ts';
import { ProblemError } from '../contract/problems.ts';
import { deprecationHeaderNames } from '../deprecation/policy/headers.ts';
import { ipOf } from '../lib/hosts.ts';
import type { MediaStore } from '../media/store.ts';
import { trackCalls, type AccessRecord } from './call.ts';
import { documentation } from './docs/documentation.ts';
import { livez, readyz, type HealthOptions } from './health.ts';
import { serveMedia } from './media.ts';
import { createOperations, type OperationOptions } from './operations.ts';
import { createPipeline, type PipelineOptions } from './pipeline.ts';
import { staticText } from './docs/static-text.ts';
import { answerErrors, methodNotAllowed } from './respond.ts';

export interface AppOptions extends OperationOptions, PipelineOptions, HealthOptions {
  media: MediaStore;
  /** The address that clients use, if configured: links to this service are then absolute. */
  publicBaseUrl: string | undefined;
  corsOrigins: readonly string[];
  /** Request headers that pages of these origins may send besides the contract's. */
  corsHeaders: readonly string[];
  /** Whose X-Forwarded-For is trusted: a number of proxies in front, or their addresses and subnets. */
  trustProxy: number | string[];
  /** Called once for each request, when it is over. */
  onSettled: (record: AccessRecord) => void;
}

/** The public port: the contract, then pictures, health and documentation. */
export function createApp(options: AppOptions): Express {
  const { corsOrigins, corsHeaders, organizationHeader, publicBaseUrl } = options;
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', false);
  app.set('case sensitive routing', true);
  app.set('trust proxy', options.trustProxy);
  // Express compares the entries of X-Forwarded-For as they are, with their ports.
  const isTrusted = app.get('trust proxy fn') as (address: string, hop: number) => boolean;
  app.set('trust proxy', (entry: string, hop: number) => isTrusted(ipOf(entry) ?? '', hop));
  app.locals['publicBaseUrl'] = publicBaseUrl;

  app.use(trackCalls(options.onSettled));
  if (corsOrigins.length > 0) app.use(allowOrigins(corsOrigins, [organizationHeader, ...corsHeaders]));
  app.use(createPipeline(createOperations(options), options));
  const contract = deployedContract(organizationHeader, publicBaseUrl);
  const pages = {
    '/livez': livez,
    '/readyz': readyz(options),
    '/openapi.yaml': staticText('application/yaml; charset=utf-8', contract.text),
    '/docs/': documentation(contract.document, () => options.deprecation.current.policy, publicBaseUrl),
    '/media/:file': serveMedia(options.media) as RequestHandler,
  };
  for (const [path, page] of Object.entries(pages)) app.route(path).get(page).all(answerOtherMethods);
  app.use(({ method }) => {
    throw new ProblemError('not-found', `There is nothing at this path for ${method}.`);
  });
  app.use(answerErrors);
  return app;
}

const pageMethods = ['GET', 'HEAD', 'OPTIONS'];

/** Answers OPTIONS with the methods of a page, and a method that is not one of them with 405. */
const answerOtherMethods: RequestHandler = ({ method }, response, next) => {
  if (!pageMethods.includes(method)) throw methodNotAllowed(pageMethods);
  if (method === 'OPTIONS') response.setHeader('Allow', pageMethods.join(', ')).status(204).end();
  else next();
};

const exposedHeaders = [
  ...deprecationHeaderNames,
  'X-Request-Id',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'WWW-Authenticate',
  'Allow',
];

/**
 * Lets pages of the given origins call the contract, and read the headers that matter to them. The pipeline still
 * answers OPTIONS, since it knows the allowed methods.
 */
function allowOrigins(origins: readonly string[], headers: readonly string[]): RequestHandler {
  return cors({
    origin: [...origins],
    methods: ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'],
    allowedHeaders: ['content-type', 'x-api-key', 'x-request-id', ...headers],
    exposedHeaders,
    maxAge: 600,
    preflightContinue: true,
  });
}
