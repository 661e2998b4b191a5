/** What the legacy service keeps of a user. */
export interface LegacyProfile {
  username?: string;
  profilePictureUrl?: string;
  avatar?: { url?: string; datasourceId: string; objectDefinitionId: string };
  evmLinkedWalletAddress?: string;
}

interface Reference {
  datasourceId: string;
  objectDefinitionId: string;
}

/** What a PUT of the legacy service asks for. */
export interface LegacyChange {
  username?: unknown;
  profilePicture?: { bytes: Uint8Array };
  profilePictureObjectDefinitionId?: Reference | null;
  avatarObjectDefinitionId?: Reference | null;
}

/** A request that the legacy service refuses, in its own words. */
export class LegacyError extends Error {
  readonly status: number;
  readonly legacyCode: string;

  constructor(status: number, legacyCode: string, message: string) {
    super(message);
    this.status = status;
    this.legacyCode = legacyCode;
  }
}

/** The longest name that the legacy service keeps; it cuts off the rest without a word. */
const longestName = 64;

/** One organization of the legacy service: the contract's rules, as another team implemented them. */
export class LegacyOrganization {
  readonly profiles = new Map<string, LegacyProfile>();
  /** When each profile was last changed, as ISO 8601. */
  readonly changedAt = new Map<string, string>();
  readonly denied = new Set<string>();
  /** Earlier states of profiles, with the time at which each ended, for reads that lag behind. */
  private readonly earlier = new Map<string, { until: number; profile: LegacyProfile | undefined }[]>();
  private pictures = 0;
  private readonly baseUrl: () => string;

  constructor(baseUrl: () => string) {
    this.baseUrl = baseUrl;
  }

  /** The profile as it was `lagMs` ago. */
  read(user: string, lagMs = 0): LegacyProfile | undefined {
    const at = performance.now() - lagMs;
    const was = (this.earlier.get(user) ?? []).find(({ until }) => until > at);
    return was === undefined ? this.profiles.get(user) : was.profile;
  }

  /** Contract 4.2. */
  put(user: string, change: LegacyChange): LegacyProfile {
    const profile = { ...this.profiles.get(user) };
    if (change.username !== undefined) profile.username = this.checkName(user, change.username);
    if (change.profilePicture !== undefined) {
      profile.profilePictureUrl = `${this.baseUrl()}/pictures/${++this.pictures}.png`;
    } else if (change.profilePictureObjectDefinitionId === null) {
      delete profile.profilePictureUrl;
    } else if (change.profilePictureObjectDefinitionId !== undefined) {
      profile.profilePictureUrl = imageOf(change.profilePictureObjectDefinitionId);
    }
    if (change.avatarObjectDefinitionId === null) {
      delete profile.avatar;
    } else if (change.avatarObjectDefinitionId !== undefined) {
      const { datasourceId, objectDefinitionId } = change.avatarObjectDefinitionId;
      profile.avatar = {
        url: imageOf({ datasourceId, objectDefinitionId }),
        datasourceId,
        objectDefinitionId,
      };
    }
    this.save(user, profile);
    return profile;
  }

  /** Contract 4.3. Names that could not be added. */
  ban(replacements: Record<string, string>): string[] {
    const notAdded: string[] = [];
    for (const [name, replacement] of Object.entries(replacements)) {
      if (this.denied.has(name)) continue;
      const user = this.holderOf(name);
      if (user !== undefined) {
        if (this.denied.has(replacement) || replacement in replacements || this.holderOf(replacement)) {
          notAdded.push(name);
          continue;
        }
        this.save(user, { ...this.profiles.get(user), username: replacement });
      }
      this.denied.add(name);
    }
    return notAdded;
  }

  /** Contract 4.4. */
  undeny(names: readonly string[]): { usernamesDeleted: string[]; usernamesInUse: string[] } {
    const usernamesInUse = names.filter((name) => this.holderOf(name) !== undefined);
    const free = names.filter((name) => !usernamesInUse.includes(name));
    return { usernamesDeleted: free.filter((name) => this.denied.delete(name)), usernamesInUse };
  }

  /** Contract 4.5. */
  overwrite(names: readonly string[]): void {
    const inUse = names.filter((name) => this.holderOf(name) !== undefined);
    if (inUse.length > 0) throw new LegacyError(409, 'E_IN_USE', `in use: ${inUse.join(', ')}`);
    this.denied.clear();
    for (const name of names) this.denied.add(name);
  }

  /** Changes a profile as if by a request that did not come through the bridge. */
  save(user: string, profile: LegacyProfile): void {
    const states = this.earlier.get(user) ?? [];
    states.push({ until: performance.now(), profile: this.profiles.get(user) });
    this.earlier.set(user, states.slice(-20));
    this.profiles.set(user, profile);
    this.changedAt.set(user, new Date().toISOString());
  }

  private checkName(user: string, given: unknown): string {
    if (typeof given !== 'string' || given === '') throw new LegacyError(400, 'E_NAME', 'bad username');
    const name = Array.from(given.trim()).slice(0, longestName).join('');
    if (this.denied.has(name)) throw new LegacyError(403, 'E_DENIED', 'this username is not available');
    const holder = this.holderOf(name);
    if (holder !== undefined && holder !== user) throw new LegacyError(409, 'E_TAKEN', 'name is taken');
    return name;
  }

  /** By code units: two spellings of one name in Unicode are two names here. */
  private holderOf(name: string): string | undefined {
    for (const [user, { username }] of this.profiles) if (username === name) return user;
    return undefined;
  }
}

function imageOf({ datasourceId, objectDefinitionId }: Reference): string {
  return `https://images.example.com/${encodeURIComponent(datasourceId)}/${encodeURIComponent(objectDefinitionId)}.png`;
}
