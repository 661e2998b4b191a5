import { decodeReference, type Profile } from '../domain/profile.ts';
import type { ChangedProfile, Profile as ProfileView } from './types.gen.ts';

/** Gives the absolute URL under which a stored picture file is served. */
export type FileUrl = (file: string) => string;

/** The profile as GET answers it (contract 2.1). Unset fields are absent. */
export function toGetView(profile: Profile, fileUrl: FileUrl): ProfileView {
  const view: ProfileView = toCommonView(profile, fileUrl);
  const { avatar, avatarUrl, wallet } = profile;
  if (avatar !== undefined) {
    const reference = decodeReference(avatar);
    view.avatar = avatarUrl === undefined ? reference : { url: avatarUrl, ...reference };
  }
  // "only if the user has linked an EVM wallet and the address is verified" (contract 2.1): no other is ever read.
  if (wallet !== undefined) view.evmLinkedWalletAddress = wallet;
  return view;
}

/** The profile as PUT answers it (contract 2.2). Unset fields are absent. */
export function toPutView(profile: Profile, fileUrl: FileUrl): ChangedProfile {
  const view: ChangedProfile = toCommonView(profile, fileUrl);
  if (profile.avatar !== undefined) view.avatarObjectDefinitionId = decodeReference(profile.avatar);
  return view;
}

type Common = Pick<ProfileView, 'username' | 'profilePictureUrl'>;

function toCommonView({ username, pictureFile, pictureUrl }: Profile, fileUrl: FileUrl): Common {
  const view: Common = {};
  if (username !== undefined) view.username = username;
  const url = pictureFile === undefined ? pictureUrl : fileUrl(pictureFile);
  if (url !== undefined) view.profilePictureUrl = url;
  return view;
}
