import type { Picture, Profile } from '../domain/profile.ts';
import type { ObjectReference } from '../domain/objects.ts';

/** Profile as GET answers it (contract 2.1). Unset fields are absent. */
export interface GetView {
  username?: string;
  profilePictureUrl?: string;
  avatar?: { url?: string } & ObjectReference;
  evmLinkedWalletAddress?: string;
}

/** Profile as PUT answers it (contract 2.2). Unset fields are absent. */
export interface PutView {
  username?: string;
  profilePictureUrl?: string;
  avatarObjectDefinitionId?: ObjectReference;
}

/** Gives the absolute URL under which a stored picture file is served. */
export type MediaUrl = (file: string) => string;

export function toGetView(profile: Profile, mediaUrl: MediaUrl): GetView {
  const view: GetView = toCommonView(profile, mediaUrl);
  const { avatar, wallet } = profile;
  if (avatar !== undefined) {
    view.avatar = { ...(avatar.url !== undefined && { url: avatar.url }), ...avatar.reference };
  }
  if (wallet !== undefined) view.evmLinkedWalletAddress = wallet;
  return view;
}

export function toPutView(profile: Profile, mediaUrl: MediaUrl): PutView {
  const view: PutView = toCommonView(profile, mediaUrl);
  if (profile.avatar !== undefined) view.avatarObjectDefinitionId = profile.avatar.reference;
  return view;
}

function toCommonView(profile: Profile, mediaUrl: MediaUrl): GetView & PutView {
  const view: GetView & PutView = {};
  if (profile.username !== undefined) view.username = profile.username;
  const url = profile.picture === undefined ? undefined : pictureUrl(profile.picture, mediaUrl);
  if (url !== undefined) view.profilePictureUrl = url;
  return view;
}

function pictureUrl(picture: Picture, mediaUrl: MediaUrl): string | undefined {
  return picture.kind === 'file' ? mediaUrl(picture.name) : picture.url;
}
