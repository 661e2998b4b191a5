import type { ObjectReference } from '../../src/domain/profile.ts';
import type { Random } from '../drills/random.ts';
import type { SeenProfile } from './expected.ts';

/** What a user asks for, and how it changes the profile if it is accepted. */
export interface ProfileChange {
  body: string | FormData;
  change: Partial<SeenProfile>;
}

export const objectImageUrlTemplate = 'https://images.example.com/{datasourceId}/{objectDefinitionId}.png';

/** What the template makes of a reference; its ids need no percent-encoding. */
function imageUrl({ datasourceId, objectDefinitionId }: ObjectReference): string {
  return `https://images.example.com/${datasourceId}/${objectDefinitionId}.png`;
}

/** A picture of one pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** A change of one user's profile; `newName` is an unused name, `otherName` one that somebody may have. */
export function randomChange(random: Random, newName: string, otherName: string): ProfileChange {
  const reference = (kind: string): ObjectReference => ({
    datasourceId: 'shop',
    objectDefinitionId: `${kind}-${random.between(1, 1000)}`,
  });
  const what = random.between(1, 100);
  if (what <= 40) return json({ username: newName }, { username: newName });
  if (what <= 45) return json({ username: otherName }, { username: otherName });
  if (what <= 65) {
    const avatar = reference('hat');
    return json({ avatarObjectDefinitionId: avatar }, { avatar: avatarText(avatar) });
  }
  if (what <= 70) return json({ avatarObjectDefinitionId: null }, { avatar: '' });
  if (what <= 85) {
    const picture = reference('picture');
    return json({ profilePictureObjectDefinitionId: picture }, { picture: imageUrl(picture) });
  }
  if (what <= 90) return json({ profilePictureObjectDefinitionId: null }, { picture: '' });
  if (what <= 95) {
    const avatar = reference('hat');
    const body = { username: newName, avatarObjectDefinitionId: avatar };
    return json(body, { username: newName, avatar: avatarText(avatar) });
  }
  const form = new FormData();
  form.set('profilePicture', new Blob([pixel], { type: 'image/png' }), 'me.png');
  return { body: form, change: { picture: 'upload' } };
}

function json(body: object, change: Partial<SeenProfile>): ProfileChange {
  return { body: JSON.stringify(body), change };
}

/** A profile as GET shows it (contract 2.1); undefined if there is none. */
export interface ShownProfile {
  username?: string;
  profilePictureUrl?: string;
  avatar?: Partial<ObjectReference> & { url?: string };
}

export function seenIn(profile: ShownProfile | undefined): SeenProfile {
  const { username = '', profilePictureUrl: url = '', avatar } = profile ?? {};
  const isReference = url === '' || url.startsWith('https://images.example.com/');
  return { username, avatar: avatar ? avatarText(avatar) : '', picture: isReference ? url : 'upload' };
}

function avatarText({ datasourceId, objectDefinitionId }: Partial<ObjectReference>): string {
  return `${datasourceId}/${objectDefinitionId}`;
}
