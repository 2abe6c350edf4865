import { describe, expect, test } from '@jest/globals';
import { earlierSegments, joined, pastOf } from './earlier-segments.js';
import { StreamNames } from './names.js';
import { growingPlaylistHead, type SegmentEntry, segmentLines } from './playlist.js';

const names = new StreamNames('main-mf3k2a');
const initName = (header: number): string => names.init(header);

/** The segments of a stream whose room moved before the segment `movedAt`. */
function segments(first: number, count: number, movedAt = 3): SegmentEntry[] {
  return Array.from({ length: count }, (_, i) => ({
    sequence: first + i,
    name: names.segment(first + i),
    parts: Array.from({ length: 6 }, () => ({ name: '', frames: 10, independent: false, bytes: 1 })),
    startedAtMs: 1_000 * (first + i),
    header: first + i < movedAt ? 0 : 1,
    begins: first + i === movedAt,
  }));
}

const linesOf = (listed: readonly SegmentEntry[]): string =>
  listed.map((segment, i) => segmentLines(segment, listed[i - 1] ?? null, initName)).join('');
const stored = (listed: readonly SegmentEntry[]): string => growingPlaylistHead(listed[0]!) + linesOf(listed);

describe('a stored playlist of another node', () => {
  test('is listed here as it was there, up to the segments that come with the move', () => {
    const all = segments(0, 9);
    const earlier = earlierSegments(stored(all), names, 6);
    expect(earlier.map(({ sequence, header, begins }) => [sequence, header, begins])).toEqual([
      [0, 0, false],
      [1, 0, false],
      [2, 0, false],
      [3, 1, true],
      [4, 1, false],
      [5, 1, false],
    ]);
    const past = pastOf(earlier, names)!;
    expect(past.lines).toBe(linesOf(all.slice(0, 6)));
    expect([past.count, past.first?.sequence, past.last?.sequence]).toEqual([6, 0, 5]);
  });

  test('is listed with a header of its own from any segment on', () => {
    const earlier = earlierSegments(stored(segments(0, 9)), names, 6).slice(4);
    expect(pastOf(earlier, names)?.lines).toBe(linesOf(segments(4, 2)));
    expect(pastOf([], names)).toBeUndefined();
  });

  test('is followed by what is listed here', () => {
    const earlier = pastOf(earlierSegments(stored(segments(0, 9)), names, 6), names);
    const none = { count: 0, lines: '', first: null, last: null };
    expect(joined(earlier, none)).toMatchObject({ count: 6, last: { sequence: 5 } });
    expect(joined(undefined, none)).toBe(none);
    const all = segments(0, 9);
    const past = { count: 3, lines: linesOf(all.slice(6)), first: all[6]!, last: all[8]! };
    expect(joined(earlier, past)).toEqual({ count: 9, lines: linesOf(all), first: earlier?.first, last: all[8] });
  });

  test('has nothing to fetch if all segments come with the move', () => {
    expect(earlierSegments(stored(segments(6, 3)), names, 6)).toEqual([]);
    expect(earlierSegments('', names, 0)).toEqual([]);
  });

  const text = stored(segments(0, 9));
  test.each<[string, string]>([
    ['lacks a segment', text.replace(names.segment(2), names.segment(7))],
    ['names a file elsewhere', text.replace(names.segment(2), '../../etc/passwd')],
    ['names a file of another stream', text.replace(names.segment(2), 'muxed_segment_2_main.m4s')],
    ['has no header', text.replace(/#EXT-X-MAP.*\n/, '')],
    ['has a header elsewhere', text.replace(names.init(0), 'https://elsewhere/header.mp4')],
    ['has no date', text.replace(/#EXT-X-PROGRAM-DATE-TIME.*\n/, '')],
    ['has a date that does not exist', text.replace('1970-01-01T00:00:02.000Z', '1970-19-01T00:00:02.000Z')],
    ['has no duration', text.replace(/#EXTINF.*\n/, '')],
    ['has a duration without end', text.replace('#EXTINF:1.99998,', '#EXTINF:1e99,')],
    ['ends early', stored(segments(0, 5))],
    ['has more lines than segments', text.replace('muxed_segment_1', `${'#\n'.repeat(60)}muxed_segment_1`)],
  ])('is refused if it %s', (_what, playlist) => {
    expect(() => earlierSegments(playlist, names, 6)).toThrow(/^its playlist (has an unexpected segment|ends with)/);
  });
});
