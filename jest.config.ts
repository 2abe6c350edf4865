/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const shared = {
  rootDir: '.',
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts', '.tsx'],
  transform: {
    '^.+\\.tsx?$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2023',
          parser: { syntax: 'typescript', tsx: true },
          transform: { react: { runtime: 'automatic' } },
        },
        module: { type: 'es6' },
      },
    ],
  },
  moduleNameMapper: {
    // Tests read the sources, never a stale build.
    '^@bloom/app-bloom/testing$': '<rootDir>/apps/bloom/src/testing/test-node.ts',
    '^@bloom/react/kit$': '<rootDir>/packages/react/src/kit/index.ts',
    '^@bloom/([a-z-]+)/testing$': '<rootDir>/packages/$1/src/testing/index.ts',
    '^@bloom/([a-z-]+)$': '<rootDir>/packages/$1/src/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
} satisfies Config;

const config: Config = {
  // Generous, because the machine is shared: the limit only ends tests that hang.
  testTimeout: 30_000,
  globalSetup: '<rootDir>/scripts/testing/fresh-build.mjs',
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: ['<rootDir>/{packages,apps,scripts}/**/*.test.{ts,tsx}'],
      setupFiles: ['<rootDir>/scripts/testing/unit-setup.cjs'],
      setupFilesAfterEnv: ['<rootDir>/scripts/testing/test-setup.mjs'],
    },
    {
      ...shared,
      displayName: 'e2e',
      testMatch: ['<rootDir>/e2e/**/*.test.ts'],
      setupFilesAfterEnv: ['<rootDir>/scripts/testing/test-setup.mjs'],
    },
  ],
};

export default config;
