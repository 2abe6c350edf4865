import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { cutFront, cutTo, pad, printable, type Screen, widthOf, wrap } from './style.js';
import { type Column, table } from './table.js';
import { age, alive, kilobits, megabits, millis, percent, short, shortNode, size, span } from './units.js';

const plain = (width: number): Screen => ({ width, colour: false });

describe('human-readable numbers', () => {
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
  ])('formats %d ms as %s', (ms, text) => expect(span(ms)).toBe(text));

  test('formats ages, rates, sizes and shares', () => {
    expect(age(7_868_000)).toBe('02:11:08');
    expect(age(0)).toBe('00:00:00');
    expect(age(-5)).toBe('00:00:00');
    expect(age(525_600_000)).toBe('6d 02h');
    expect(short(0)).toBe('0');
    expect(short(0.5)).toBe('0.5');
    expect(short(118)).toBe('118');
    expect(short(41_200)).toBe('41k');
    expect(short(1_240_000)).toBe('1.2M');
    expect(short(null)).toBe('–');
    expect(size(999)).toBe('999 B');
    expect(size(1_204_000)).toBe('1.2 MB');
    expect(size(812_000_000)).toBe('812 MB');
    expect(size(null)).toBe('–');
    expect(millis(0.31)).toBe('0.3');
    expect(millis(812.4)).toBe('812');
    expect(millis(null)).toBe('–');
    expect(percent(0.0078, 1)).toBe('0.8 %');
    expect(percent(null)).toBe('–');
    expect(kilobits(412_400)).toBe('412');
    expect(megabits(610_000)).toBe('0.61 Mb/s');
  });

  test('shortens names of nodes', () => {
    expect(alive('a@sfu-1.internal')).toBe('a');
    expect(shortNode('a@sfu-1.internal')).toBe('a@sfu-1');
    expect(shortNode('app@10.0.0.1')).toBe('app@10.0.0.1');
  });
});

describe('text', () => {
  test('lets no text move the cursor, change colours or the title, or reverse the writing direction', () => {
    expect(printable('a\u001b[2J\u0007b\nc\td\u009b1m\u202ee')).toBe('a\\u001b[2J\\u0007b⏎c d\\u009b1m\\u202ee');
  });

  test('measures text in columns', () => {
    expect(widthOf('abc')).toBe(3);
    expect(widthOf('会议')).toBe(4);
    expect(widthOf('e\u0301')).toBe(1);
    expect(widthOf('–')).toBe(1);
    expect(cutTo('recording', 5)).toBe('reco…');
    expect(cutTo('会议室', 5)).toBe('会议…');
    expect(cutTo('ok', 2)).toBe('ok');
    expect(cutFront('rooms/kitchen', 8)).toBe('…kitchen');
    expect(pad('a', 3)).toBe('a  ');
    expect(pad('a', 3, 'right')).toBe('  a');
    expect(pad('会', 3)).toBe('会 ');
  });

  test('wraps at blanks, and keeps words whole if they do not fit', () => {
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

  test('makes a table as wide as its cells without a limit', () => {
    expect(table(columns, rows, plain(Infinity))).toEqual([
      'NAME                           N  LESS  LEAST',
      'a name that is rather long     1  less  least',
      'b                           1000  x     y',
    ]);
  });

  test('cuts long cells first, then drops columns and says so', () => {
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

  test('stays within the screen for any cells as long as its columns can', () => {
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
