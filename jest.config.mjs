import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  testEnvironment: '<rootDir>/test/support/run/environment.ts',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' } },
    ],
  },
  globalSetup: '<rootDir>/test/support/run/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/run/global-teardown.ts',
  // Three on two cores: most of the time tests wait, for processes to start, leases to end and servers to take over.
  maxWorkers: Math.ceil(1.5 * availableParallelism()),
  // Only a test that hangs takes so long, on the slowest machine too.
  testTimeout: 600_000,
  // By --coverage: counting takes a third of the processor time of a run.
  coverageProvider: 'v8',
  collectCoverageFrom: ['src/**/*.ts', '!src/**/*.gen.ts'],
  coverageReporters: ['text-summary', 'lcovonly'],
};
