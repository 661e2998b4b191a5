import { randomBytes } from 'node:crypto';
import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { openTestStore, keysOf } from '../store.ts';

/**
 * Jest's environment for Node, but its globals are ordinary ones: otherwise each use of `Math` or `Buffer` asks a proxy,
 * which takes a hundred times as long. The keys of a test file go with it: every scan reads past the keys of all others.
 */
export default class Environment extends TestEnvironment {
  private readonly prefix = `pbtest-${randomBytes(4).toString('hex')}-`;

  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    const { createContext } = vm;
    Object.assign(vm, { createContext: () => createContext(vm.constants.DONT_CONTEXTIFY) });
    super(...args);
    Object.assign(vm, { createContext });
    this.global.process.env['TEST_PREFIX'] = this.prefix;
  }

  override async teardown(): Promise<void> {
    await super.teardown();
    const store = await openTestStore();
    const keys = await keysOf(store, this.prefix);
    await Promise.all(keys.map((key) => store.unlink(key)));
    await closeRedis(store);
  }
}
