import { encodeReference } from '../../../src/domain/objects.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { defineMigrationScripts } from '../../../src/migration/scripts.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import type { Store } from '../../../src/redis/scripts.ts';
import { openStore } from '../ground.ts';
import { judged, type Section } from '../section.ts';
import { avatar, baseOf, pictureUrl, userId, wallet } from '../seed.ts';

const profiles = 200_000;
const batch = 500;
const organization = 'memory';

export const memory: Section = {
  name: 'memory',
  about: `bytes of a profile, of ${profiles.toLocaleString('en')} that the migration brings in`,
  run: async () => {
    const { store, close } = await openStore();
    try {
      await saveSettings(store, 'pb:', organization, defaultSettings);
      const before = await usedMemory(store);
      await migrateProfiles(store);
      const bytes = ((await usedMemory(store)) - before) / profiles;
      const row = {
        what: 'memory of a profile, its name in the index included',
        result: `${Math.round(bytes)} bytes`,
        noise: `used_memory, of ${profiles.toLocaleString('en')} profiles`,
        figures: { profiles, bytes },
      };
      return [judged(row, bytes, { atMost: 350 })];
    } finally {
      await close();
    }
  },
};

async function usedMemory(store: Store): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await store.info('memory'))?.[1]);
}

/** Brings whole profiles in as `npm run migrate` does: a name, a picture's URL, an avatar by reference, a wallet. */
async function migrateProfiles(store: Store): Promise<void> {
  const migration = defineMigrationScripts(store);
  const now = String(Date.now());
  const rest = ['pu', pictureUrl, 'ar', encodeReference(avatar), 'w', wallet, 't', now];
  for (let done = 0; done < profiles; done += batch) {
    const rows = Array.from({ length: batch }, (_, i) => {
      const name = `player-${String(done + i).padStart(6, '0')}`;
      return [userId(done + i), name, now, '', '', '', 'u', name, ...rest];
    });
    const reply = await migration.migrateProfiles(baseOf(organization), '0', 'write', JSON.stringify(rows));
    if (reply[0] !== 'applied') throw new Error(`the migration replied ${reply[0]}`);
  }
}
