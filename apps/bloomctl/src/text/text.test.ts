import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { cutFront, cutTo, pad, printable, type Screen, widthOf, wrap } from './style.js';
import { type Column, table } from './table.js';
import { age, alive, kilobits, megabits, millis, percent, short, shortNode, size, span } from './units.js';

const plain = (width: number): Screen => ({ width, colour: false });

describe('numbers as people read them', () => {
  test.each([
    [0, '0 ms'],
    [0.42, '0.4 ms'],
    [790, '790 ms'],
    [3_000, '3 s'],
    [9_412, '9.4 s'],
    [16_000, '16 s'],
    [24 * 60_000, '24 min'],
    [3 * 3_600_000 + 5 * 60_000, '3 h 05 min'],
    [6 * 86_400_000 + 2 * 3_600_000, '6d 02h'],
    [-1_400, '-1.4 s'],
  ])('%d ms is %s', (ms, text) => expect(span(ms)).toBe(text));

  test('ages, rates, sizes and parts', () => {
    expect([age(7_868_000), age(0), age(-5), age(525_600_000)]).toEqual(['02:11:08', '00:00:00', '00:00:00', '6d 02h']);
    expect([short(0), short(0.5), short(118), short(41_200), short(1_240_000), short(null)]).toEqual([
      '0',
      '0.5',
      '118',
      '41k',
      '1.2M',
      '–',
    ]);
    expect([size(999), size(1_204_000), size(812_000_000), size(null)]).toEqual(['999 B', '1.2 MB', '812 MB', '–']);
    expect([millis(0.31), millis(812.4), millis(null)]).toEqual(['0.3', '812', '–']);
    expect([percent(0.0078, 1), percent(null), kilobits(412_400), megabits(610_000)]).toEqual([
      '0.8 %',
      '–',
      '412',
      '0.61 Mb/s',
    ]);
  });

  test('names of nodes', () => {
    expect([alive('a@sfu-1.internal'), shortNode('a@sfu-1.internal'), shortNode('app@10.0.0.1')]).toEqual([
      'a',
      'a@sfu-1',
      'app@10.0.0.1',
    ]);
  });
});

describe('text', () => {
  test('of others cannot move the cursor, change colours or the title, or turn the direction of writing', () => {
    expect(printable('a\u001b[2J\u0007b\nc\td\u009b1m\u202ee')).toBe('a\\u001b[2J\\u0007b⏎c d\\u009b1m\\u202ee');
  });

  test('is measured in columns', () => {
    expect([widthOf('abc'), widthOf('会议'), widthOf('e\u0301'), widthOf('–')]).toEqual([3, 4, 1, 1]);
    expect([cutTo('recording', 5), cutTo('会议室', 5), cutTo('ok', 2), cutFront('rooms/kitchen', 8)]).toEqual([
      'reco…',
      '会议…',
      'ok',
      '…kitchen',
    ]);
    expect([pad('a', 3), pad('a', 3, 'right'), pad('会', 3)]).toEqual(['a  ', '  a', '会 ']);
  });

  test('wraps at blanks, and words that do not fit stay whole', () => {
    expect(wrap('one two three four five six', plain(20), '  ')).toEqual(['  one two three four five six']);
    expect(wrap('one two three four five six', plain(22), '  ')).toEqual(['  one two three four', '  five six']);
    expect(wrap('one two', plain(Infinity))).toEqual(['one two']);
  });
});

describe('a table', () => {
  const columns: Column[] = [
    { title: 'NAME', shrinksTo: 8 },
    { title: 'N', align: 'right' },
    { title: 'LESS', drop: 2 },
    { title: 'LEAST', drop: 1 },
  ];
  const rows = [
    ['a name that is rather long', '1', 'less', 'least'],
    ['b', '1000', 'x', { text: 'y', style: 'red' as const }],
  ];

  test('is as wide as its cells when nobody limits it', () => {
    expect(table(columns, rows, plain(Infinity))).toEqual([
      'NAME                           N  LESS  LEAST',
      'a name that is rather long     1  less  least',
      'b                           1000  x     y',
    ]);
  });

  test('cuts long cells first, then leaves columns out and says so', () => {
    expect(table(columns, rows, plain(30))[1]).toBe('a name tha…     1  less  least');
    expect(table(columns, rows, plain(24))).toEqual([
      'NAME            N  LEAST',
      'a name tha…     1  least',
      'b            1000  y',
      'not shown at 24 columns: LESS',
    ]);
  });

  test('paints the cell, not the blanks between cells', () => {
    expect(table(columns, rows, { width: 60, colour: true })[2]?.endsWith('  \u001b[31my\u001b[39m')).toBe(true);
  });

  test('of whatever cells keeps within the screen as long as its columns can', () => {
    const cell = fc.string({ unit: 'grapheme', maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell, cell, cell), { maxLength: 5 }),
        fc.integer({ min: 60, max: 120 }),
        (cells, width) => {
          const shrinking = columns.map((column): Column => ({ ...column, shrinksTo: 8 }));
          for (const line of table(shrinking, cells, plain(width)).slice(0, cells.length + 1)) {
            expect(widthOf(line)).toBeLessThanOrEqual(width);
          }
        },
      ),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});
