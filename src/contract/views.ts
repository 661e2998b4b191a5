import type { Picture, Profile } from '../domain/profile.ts';
import type { ChangedProfile, Profile as ProfileView } from './types.gen.ts';

/** Gives the absolute URL under which a stored picture file is served. */
export type FileUrl = (file: string) => string;

/** The profile as GET answers it (contract 2.1). Unset fields are absent. */
export function toGetView(profile: Profile, fileUrl: FileUrl): ProfileView {
  const view: ProfileView = toCommonView(profile, fileUrl);
  const { avatar, wallet } = profile;
  if (avatar !== undefined) {
    const { datasourceId, objectDefinitionId } = avatar.reference;
    view.avatar =
      avatar.url === undefined
        ? { datasourceId, objectDefinitionId }
        : { url: avatar.url, datasourceId, objectDefinitionId };
  }
  // "only if the user has linked an EVM wallet and the address is verified" (contract 2.1): others are never read.
  if (wallet !== undefined) view.evmLinkedWalletAddress = wallet;
  return view;
}

/** The profile as PUT answers it (contract 2.2). Unset fields are absent. */
export function toPutView(profile: Profile, fileUrl: FileUrl): ChangedProfile {
  const view: ChangedProfile = toCommonView(profile, fileUrl);
  if (profile.avatar !== undefined) view.avatarObjectDefinitionId = profile.avatar.reference;
  return view;
}

type Common = Pick<ProfileView, 'username' | 'profilePictureUrl'>;

function toCommonView(profile: Profile, fileUrl: FileUrl): Common {
  const view: Common = {};
  if (profile.username !== undefined) view.username = profile.username;
  const url = profile.picture === undefined ? undefined : pictureUrl(profile.picture, fileUrl);
  if (url !== undefined) view.profilePictureUrl = url;
  return view;
}

function pictureUrl(picture: Picture, fileUrl: FileUrl): string | undefined {
  return picture.kind === 'file' ? fileUrl(picture.name) : picture.url;
}
