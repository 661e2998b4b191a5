import type { RequestHandler } from 'express';
import { problem } from '../../contract/problems.ts';
import { toGetView, type MediaUrl } from '../../contract/views.ts';
import { readOwnProfile } from '../../redis/credentials.ts';
import { sendJson, sendProblem } from '../respond.ts';
import {
  admit,
  invalidApiKey,
  noUser,
  readCredentials,
  type AuthenticationOptions,
} from '../authentication.ts';

/** Contract 4.1: authentication and the profile in one round trip. */
export function getProfile(options: AuthenticationOptions & { mediaUrl: MediaUrl }): RequestHandler {
  return async (request, response) => {
    const { base, sha256 } = readCredentials(request, response, options);
    const outcome = await readOwnProfile(options.store, base, sha256);
    if (outcome.kind === 'unknown') throw invalidApiKey();
    const limited = admit(response, base, outcome.caller, options);
    if (limited !== undefined) await limited;
    switch (outcome.kind) {
      case 'no-user':
        throw noUser();
      case 'none':
        sendProblem(response, problem('profile-not-found', 'You have no profile yet.'));
        break;
      case 'profile':
        sendJson(response, 200, toGetView(outcome.profile, options.mediaUrl));
    }
  };
}
