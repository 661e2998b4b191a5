// A stand-in for the legacy service: profiles in memory, answered at once. Its clients notice nothing but the time that
// a bridge in front of it adds; a real service takes longer, so the same time matters less.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ChangedProfile, Profile } from '../../../src/contract/types.gen.ts';
import { users } from '../load/load.ts';
import { avatar, avatarUrl, pictureUrl, playerKeyOf, usernameOf, wallet } from '../load/seed.ts';
import { listenForBench, sendJson } from './http.ts';

const profiles = new Map<string, Profile>();
for (let user = 0; user < users; user++) {
  profiles.set(playerKeyOf(user), {
    username: usernameOf(user),
    profilePictureUrl: pictureUrl,
    avatar: { url: avatarUrl, ...avatar },
    evmLinkedWalletAddress: wallet,
  });
}

function put(profile: Profile, { username }: { username?: string }): ChangedProfile {
  if (username !== undefined) profile.username = username;
  const { profilePictureUrl } = profile;
  return {
    username: profile.username,
    profilePictureUrl,
    avatarObjectDefinitionId: avatar,
  } as ChangedProfile;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const profile = profiles.get(String(request.headers['x-api-key']));
  if (profile === undefined) return send(response, 401, { error: 'unknown key' });
  if (request.method === 'GET') return send(response, 200, profile);
  let text = '';
  for await (const chunk of request) text += String(chunk);
  send(response, 200, put(profile, JSON.parse(text) as { username?: string }));
}

function send(response: ServerResponse, status: number, body: object): void {
  sendJson(response, status, JSON.stringify(body));
}

listenForBench((request, response) => {
  answer(request, response).catch(() => send(response, 400, { error: 'unreadable' }));
});
