import { encodeReference } from '../../../src/domain/profile.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { openStore, usedMemory } from '../resources.ts';
import { judged, type Row, type Section } from '../report/section.ts';
import { avatar, baseOf, pictureUrl, userId, usernameOf, wallet } from '../load/seed.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { claimsKey } from '../../../src/redis/keys.ts';
import { migrateClaim, migrateProfiles } from '../../../src/migration/engine/scripts.ts';

const profiles = 200_000;
const batch = 500;

/** Shapes of profiles: references to objects differ most. */
const shapes = [
  {
    organization: 'short',
    shown: { datasourceId: 'avatars', objectDefinitionId: 'knight-07' },
    aim: { atMost: 350 },
  },
  { organization: 'long', shown: avatar, aim: undefined },
] as const;

export const memory: Section = {
  name: 'memory',
  about: `bytes of a profile, of ${profiles.toLocaleString('en')} that the migration brings in`,
  run: async () => {
    const { store, close } = await openStore();
    try {
      const rows: Row[] = [];
      for (const { organization, shown, aim } of shapes) {
        await saveSettings(store, 'pb:', organization, defaultSettings);
        const before = await usedMemory(store);
        await bringIn(store, organization, encodeReference(shown));
        const bytes = ((await usedMemory(store)) - before) / profiles;
        const row = {
          what: `memory of a profile and its name, avatar reference of ${encodeReference(shown).length}`,
          result: `${Math.round(bytes)} bytes`,
          noise: `used_memory, of ${profiles.toLocaleString('en')} profiles`,
          figures: { profiles, bytes },
        };
        rows.push(judged(row, bytes, aim));
      }
      return rows;
    } finally {
      await close();
    }
  },
};

/**
 * Brings whole profiles in as `npm run migrate` does: a user id of 36 bytes, a name of 13, a picture's URL of 45, an
 * avatar by reference, a wallet.
 */
async function bringIn(store: RedisClient, organization: string, reference: string): Promise<void> {
  const now = String(Date.now());
  const claim = 'memory\n0\n1';
  await migrateClaim(store, baseOf(organization), claim, 'claim');
  const rest = ['pu', pictureUrl, 'ar', reference, 'w', wallet, 't', now];
  for (let done = 0; done < profiles; done += batch) {
    const rows = Array.from({ length: batch }, (_, i) => {
      const name = usernameOf(done + i);
      return [userId(done + i), name, '', '', 'u', name, ...rest];
    });
    const reply = await migrateProfiles(
      store,
      baseOf(organization),
      0,
      '0',
      claim,
      JSON.stringify(rows),
      '',
      0,
      0,
      '',
    );
    if (reply[0] !== 'applied') throw new Error(`the migration replied ${reply[0]}`);
  }
  await store.del(claimsKey(baseOf(organization)));
}
