import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from './modules.mjs';
import { checkSeams } from './seams.mjs';

const FILE = 'packages/rooms/src/clock-face.ts';

/** Returns the findings for a file that has this text and may use these words. */
function check(text: string, words: readonly string[] = [], file = FILE): string[] {
  const path = join(root, file);
  const [group, name] = file.split('/');

  return checkSeams(new Map([[path, { path, group, name, text }]]), words.length > 0 ? { [file]: words } : {});
}

test.each([
  'Math.random()',
  'Date.now()',
  'new Date()',
  'performance.now()',
  'systemClock.now()',
  'awakeClock.wall()',
  'setTimeout(run, 5)',
  'setInterval(run, 5)',
  'randomBytes(4)',
  'randomUUID()',
])('refuses %s', (use) => {
  expect(check(`const made = ${use};\n`)).toEqual([expect.stringMatching(/out of a simulation's reach/)]);
});

test('refuses an import that opens sockets', () => {
  expect(check("import { connect, isIP, type Socket } from 'node:net';\n")).toEqual([
    expect.stringMatching(/'connect' is out of/),
  ]);
});

test.each(['clock.setTimeout(run, 5)', 'this.#setTimeout(run)', 'new Date(wallMs)', '// Date.now()'])(
  'allows %s',
  (use) => {
    expect(check(`${use};\n`)).toEqual([]);
  },
);

test('allows each seam the words it is listed for', () => {
  expect(check('const made = randomBytes(4);\n', ['randomBytes'])).toEqual([]);
});

test('reports a seam that is no longer used', () => {
  expect(check('const made = 4;\n', ['randomBytes'])).toEqual([
    `${FILE}: randomBytes is no longer used: remove it from seams.mjs`,
  ]);
});

test('allows anything in test support and other packages', () => {
  expect(check('Date.now();\n', [], 'packages/rooms/src/testing/clock-face.ts')).toEqual([]);
  expect(check('Date.now();\n', [], 'packages/sfu/src/clock-face.ts')).toEqual([]);
});
