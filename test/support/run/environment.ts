import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

/**
 * Jest's environment for Node, but its globals are ordinary ones. Otherwise each use of `Math` or `Buffer` asks a proxy,
 * which takes a hundred times as long.
 */
export default class OrdinaryGlobals extends TestEnvironment {
  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    const { createContext } = vm;
    Object.assign(vm, { createContext: () => createContext(vm.constants.DONT_CONTEXTIFY) });
    super(...args);
    Object.assign(vm, { createContext });
  }
}
