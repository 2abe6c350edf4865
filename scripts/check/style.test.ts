import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { root } from './modules.mjs';
import { checkStyle } from './style.mjs';

const FILE = 'packages/sfu/src/forwarding/house.ts';

/** Returns the findings for a file with this text, while rooms accept the codecs `opus` and `red`. */
function check(text: string, file = FILE): string[] {
  const path = join(root, file);
  const [group, name] = file.split('/');

  return checkStyle(new Map([[path, { path, group, name, text }]]), ['opus', 'red']);
}

describe('names of codecs outside their payload formats', () => {
  test.each([
    ["if (codec === 'red') return;", 'red'],
    ['const isRed = true;', 'Red'],
    ['const redPacket = read();', 'red'],
    ['const RED_BLOCKS = new Set();', 'RED'],
    ['const opusFrames = [];', 'opus'],
    ['readOPUSHeader();', 'OPUS'],
    ['// as H.264 does', 'H.264'],
    ['const wasH264Key = h.key;', 'H264'],
    ['vp8frame();', 'vp8'],
    ['track_av1.close();', 'av1'],
    ['// the NALs of a picture', 'NALs'],
    ['for (const nalu of units) send(nalu);', 'nalu'],
    ['const nalUnit = next();', 'nal'],
    ['toAnnexB(frame);', 'Annex-B'],
    ['// in annex-b', 'annex-b'],
  ])('refuses %s', (line, codec) => {
    expect(check(`${line}\n`)).toEqual([`${FILE}:1: '${codec}': ask the payload format instead`]);
  });

  test.each([
    'const redactor = answered.reduce(shared);',
    'class MirroredTrack extends SharedTrack {}',
    'const offeredSsrcs = unanswered(RelayCredentials);',
    'const MAX_BUFFERED_BYTES = 2 * REORDERED_PICTURES;',
    'const opusculum = octopus();',
    'analyse(signal, final);',
    'const annexes = build();',
  ])('allows %s', (line) => {
    expect(check(`${line}\n`)).toEqual([]);
  });

  test('reports the line that names a codec', () => {
    expect(check("open(door);\nopen('red');\n")).toEqual([expect.stringContaining('house.ts:2: ')]);
  });

  test('allows them in components and in tests', () => {
    expect(check("open('red');\n", 'packages/components/src/hls/house.ts')).toEqual([]);
    expect(check("open('red');\n", 'packages/sfu/src/forwarding/house.test.ts')).toEqual([]);
  });
});

describe('length', () => {
  const shared = (lines: number): string => `export const HOUSE = [];\n${'open(door);\n'.repeat(lines - 1)}`;

  test('allows a shared file of 15 to 500 lines', () => {
    expect(check(shared(15))).toEqual([]);
    expect(check(shared(500))).toEqual([]);
  });

  test('refuses a shared file that is shorter or longer', () => {
    expect(check(shared(14))).toEqual([`${FILE}:1: 14 lines; join a neighbour below 15`]);
    expect(check(shared(501))).toEqual([`${FILE}:502: 501 lines; split it above 500`]);
  });

  test('allows a short file that shares nothing', () => {
    expect(check('open(door);\n')).toEqual([]);
  });

  test('allows a comment of 120 columns and refuses one of 121', () => {
    expect(check(`// ${'x'.repeat(117)}\n`)).toEqual([]);
    expect(check(`// ${'x'.repeat(118)}\n`)).toEqual([`${FILE}:1: a comment of 121 columns; wrap it at 120`]);
  });
});

test.each([
  ['a member hidden by TypeScript alone', '  private door = 1;', 'use #private'],
  ['an error type in braces', ' * @throws {DoorError} if it is shut', "write '@throws Name', without braces"],
  ['a log event that is not area.snake_case', "log.warn('door.isShut', {});", 'is not area.snake_case'],
  ['a lower-case constant', 'const doors = 4;', 'is not SCREAMING_SNAKE'],
  ['a recursive mkdir', 'mkdirSync(path, { recursive: true });', 'use makeFolder'],
  ['a docstring that starts with a fragment', '/** Of the door. */', 'starts with a fragment'],
])('refuses %s', (_what, line, finding) => {
  expect(check(`${line}\n`)).toEqual([expect.stringContaining(finding)]);
});

test.each([
  '  private constructor() {}',
  ' * @throws DoorError if it is shut',
  "log.warn('door.is_shut', {});",
  'const doors = [4];',
  'mkdirSync(path);',
  '/** The width of the door. */',
])('allows %s', (line) => {
  expect(check(`${line}\n`)).toEqual([]);
});
