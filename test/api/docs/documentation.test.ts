import { expect, test } from '@jest/globals';
import { setInLayer } from '../../../src/deprecation/policy/policy-edits.ts';
import { changePolicy } from '../../../src/deprecation/policy/policy-store.ts';
import { startBridge } from '../../support/bridge.ts';
import { createClient } from '../../support/requests/client.ts';

test("/docs/ shows the operator's dates and the brownouts to come, without a restart", async () => {
  const bridge = await startBridge();
  const { store, config, url } = bridge;
  const read = async () => (await createClient(url).request('GET', '/docs/')).text;
  try {
    expect(await read()).toContain('31 December 2027');
    const start = Date.parse('2030-03-01T12:00:00Z');
    const edit = setInLayer({
      sunsetAt: Date.parse('2031-05-06T00:00:00Z'),
      brownouts: [{ start, end: start + 1_800_000 }],
    });
    const changed = await changePolicy(store, config.keyPrefix, edit, { defaults: [], now: Date.now() });
    expect(changed.kind).toBe('changed');
    let page = await read();
    while (page.includes('31 December 2027')) page = await read();
    expect(page).toContain('6 May 2031');
    expect(page).toMatch(/Brownouts[^]*1 March 2030/);
  } finally {
    await bridge.close();
  }
});
