import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ConfigError } from './errors.js';
import { editDistance } from './hints.js';
import { loadConfig } from './load-config.js';
import { printConfig } from './print-config.js';
import { renderReference } from './reference-page.js';
import { VARIABLES } from './variables.js';

const machine = { cwd: '/srv', hostname: 'host', cores: 2, randomBytes: (n: number) => Buffer.alloc(n, 1) };
const NAMES = Object.values(VARIABLES).map((variable) => variable.name as string);

function line(printed: string, name: string): string[] {
  return (printed.split('\n').find((one) => one.startsWith(`${name} `)) ?? '').split(/ {2,}/);
}

describe('the printed configuration', () => {
  test('prints one line per variable with its value and origin', () => {
    const given = { JF_PORT: '6000', FJ_IP: '10.0.0.1', JF_S3_PATH_PREFIX: 'a\nb', JF_SERVER_API_TOKEN: 'token' };
    const printed = printConfig(loadConfig(given, machine));

    expect(printed.split('\n')[0]).toBe('profile: development (NODE_ENV)');
    expect(printed.split('\n')).toHaveLength(NAMES.length + 1);
    expect(line(printed, 'JF_PORT')).toEqual(['JF_PORT', '6000', 'environment']);
    expect(line(printed, 'JF_IP')).toEqual(['JF_IP', '10.0.0.1', 'FJ_IP']);
    expect(line(printed, 'JF_HOST')).toEqual(['JF_HOST', '10.0.0.1:6000', 'default']);
    expect(line(printed, 'JF_DIST_QUERY')).toEqual(['JF_DIST_QUERY', '-', 'not read']);
    expect(line(printed, 'JF_S3_PATH_PREFIX')[1]).toBe('"a\\nb"');
  });

  test('masks secrets, whether configured or generated', () => {
    const env = {
      JF_SERVER_API_TOKEN: 'hidden-1',
      JF_DIST_ENABLED: 'true',
      JF_DIST_COOKIE: 'hidden-2',
      JF_WEBHOOK_SECRET: 'hidden-3',
      JF_S3_BUCKET: 'b',
      JF_S3_REGION: 'r',
      JF_S3_ACCESS_KEY_ID: 'hidden-4',
      JF_S3_SECRET_ACCESS_KEY: 'hidden-5',
    };
    const printed = printConfig(loadConfig(env, machine));

    expect(printed).not.toContain('hidden');
    expect(printed).not.toContain(Buffer.alloc(48, 1).toString('base64'));
    expect(line(printed, 'JF_SECRET_KEY_BASE')[1]).toBe('********');
  });
});

test('docs/reference/configuration.md matches the table (npm run generate:config writes it)', () => {
  const file = new URL('../../../docs/reference/configuration.md', import.meta.url);

  expect(readFileSync(file, 'utf8')).toBe(renderReference());
});

test('loads the settings of any environment or throws a ConfigError that names a known variable', () => {
  const value = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.constantFrom('', 'true', 'false', '1', '80', 'a@b', '127.0.0.1', '::1', '1-2', 'name', 'DNS', 'https://x/y'),
  );
  const names = NAMES.flatMap((name) => (name.startsWith('JF_') ? [name, `F${name.slice(1)}`] : [name]));
  const env = fc.dictionary(fc.constantFrom(...names, 'NODE_ENV', 'JF_X'), value, { maxKeys: 12 });

  fc.assert(
    fc.property(env, (given) => {
      try {
        const loaded = loadConfig(given, { ...machine, readFile: () => Buffer.from('garbage') });
        printConfig(loaded);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        expect(NAMES).toContain(error.variable);
      }
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});

describe('the edit distance', () => {
  test.each([
    ['', '', 0],
    ['abc', 'abc', 0],
    ['abc', 'abd', 1],
    ['abc', 'acb', 2],
    ['kitten', 'sitting', 3],
    ['abc', 'xyz', 3],
    ['a', 'abcdef', 4],
  ])('computes the edit distance from %j to %j as %i', (a, b, distance) => {
    expect(editDistance(a, b, 3)).toBe(distance);
  });
});
