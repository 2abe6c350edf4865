import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import {
  declaredDuration,
  masterPlaylist,
  mediaPlaylist,
  skippable,
  type PlaylistState,
  type SegmentEntry,
} from './playlist.js';

function segment(sequence: number, frames: readonly number[] = [10, 10, 10, 10, 10, 10]): SegmentEntry {
  const parts = frames.map((count, p) => ({
    name: `s${sequence}_${p}_part.m4s`,
    frames: count,
    independent: p === 0,
    bytes: 1,
  }));
  const startedAtMs = 1_700_000_000_000 + sequence * 2_000;

  return { sequence, name: `s${sequence}.m4s`, parts, startedAtMs, header: 0, begins: false };
}

function live(first: number, complete: number, openParts: number): PlaylistState {
  const segments = Array.from({ length: complete }, (_, i) => segment(first + i));
  const open = segment(
    first + complete,
    Array.from({ length: openParts }, () => 10),
  );

  return {
    lowLatency: true,
    initName: (header) => (header === 0 ? 'init.mp4' : `init${header}.mp4`),
    past: null,
    segments,
    open,
    beginsNext: false,
    nextPart: `s${first + complete}_${openParts}_part.m4s`,
    ended: false,
  };
}

const valuesOf = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1]!);

describe('the playlist of a low-latency stream', () => {
  test('reads as players expect', () => {
    expect(mediaPlaylist(live(7, 1, 2))).toBe(`#EXTM3U
#EXT-X-VERSION:9
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.002,CAN-SKIP-UNTIL=12.0
#EXT-X-PART-INF:PART-TARGET=0.334
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-MAP:URI="init.mp4"
#EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:34.000Z
#EXT-X-PART:DURATION=0.33333,URI="s7_0_part.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.33333,URI="s7_1_part.m4s"
#EXT-X-PART:DURATION=0.33333,URI="s7_2_part.m4s"
#EXT-X-PART:DURATION=0.33333,URI="s7_3_part.m4s"
#EXT-X-PART:DURATION=0.33333,URI="s7_4_part.m4s"
#EXT-X-PART:DURATION=0.33333,URI="s7_5_part.m4s"
#EXTINF:1.99998,
s7.m4s
#EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:36.000Z
#EXT-X-PART:DURATION=0.33333,URI="s8_0_part.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.33333,URI="s8_1_part.m4s"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="s8_2_part.m4s"
`);
  });

  test('never declares more than there is, and declares a segment as the sum of its parts', () => {
    const frames = fc.array(fc.integer({ min: 1, max: 10 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(frames, { minLength: 1, maxLength: 3 }), (shapes) => {
        const segments = shapes.map((shape, i) => segment(i, shape));
        const text = mediaPlaylist({ ...live(0, 0, 0), segments, open: null, nextPart: null });
        const durations = valuesOf(text, /#EXTINF:([\d.]+),/g).map(Number);
        const parts = valuesOf(text, /#EXT-X-PART:DURATION=([\d.]+)/g).map(Number);
        const target = Number(valuesOf(text, /PART-TARGET=([\d.]+)/g)[0]);
        let at = 0;
        for (const [i, shape] of shapes.entries()) {
          const own = parts.slice(at, at + shape.length);
          at += shape.length;
          const sum = own.reduce((total, value) => total + Math.round(value * 1e5), 0) / 1e5;
          expect(durations[i]).toBeCloseTo(sum, 9);
          expect(durations[i]).toBe(declaredDuration(segments[i]!));
          for (const [k, value] of own.entries()) {
            expect(value).toBeLessThanOrEqual(shape[k]! / 30);
            expect(value).toBeLessThanOrEqual(target);
          }
        }
        expect(at).toBe(parts.length);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('lists only the parts of the last three segments and of the growing one', () => {
    const text = mediaPlaylist(live(0, 8, 1));
    expect(valuesOf(text, /URI="s(\d+)_\d_part/g).filter((value, i, all) => all.indexOf(value) === i)).toEqual([
      '5',
      '6',
      '7',
      '8',
    ]);
  });

  test("combines as a delta with the player's playlist into the full playlist", () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.integer({ min: 1, max: 40 }), fc.nat(5), (first, complete, openParts) => {
        const state = live(first, complete, openParts);
        const full = mediaPlaylist(state);
        const delta = mediaPlaylist(state, { delta: true });
        const names = (text: string): string[] => valuesOf(text, /^(s\d+\.m4s)$/gm);
        const skipped = Number(valuesOf(delta, /SKIPPED-SEGMENTS=(\d+)/g)[0] ?? 0);
        expect(skipped).toBe(skippable(state));
        expect([...names(full).slice(0, skipped), ...names(delta)]).toEqual(names(full));
        const kept = state.segments.slice(skipped).reduce((sum, entry) => sum + declaredDuration(entry), 0);
        if (skipped > 0) expect(kept + declaredDuration(state.open!)).toBeGreaterThanOrEqual(12);
        expect(delta.includes('#EXT-X-MAP')).toBe(skipped === 0);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});

describe('the playlist of a room that has moved', () => {
  /** The room moved before segment 4 and before segment 6. */
  const moved = (sequence: number): SegmentEntry => {
    const header = sequence < 4 ? 0 : sequence < 6 ? 1 : 2;

    return { ...segment(sequence), header, begins: sequence === 4 || sequence === 6 };
  };
  const from = (first: number): string => {
    const segments = Array.from({ length: 8 - first }, (_, i) => moved(first + i));
    return mediaPlaylist({ ...live(0, 0, 0), segments, open: moved(8), nextPart: null, lowLatency: false });
  };
  const tags = (text: string): string[] =>
    text.split('\n').filter((line) => /DISCONTINUITY|MAP|SEQUENCE|^s\d/.test(line));

  test('announces a discontinuity and a new header where each node begins', () => {
    expect(tags(from(3))).toEqual([
      '#EXT-X-MEDIA-SEQUENCE:3',
      '#EXT-X-MAP:URI="init.mp4"',
      's3.m4s',
      '#EXT-X-DISCONTINUITY',
      '#EXT-X-MAP:URI="init1.mp4"',
      's4.m4s',
      's5.m4s',
      '#EXT-X-DISCONTINUITY',
      '#EXT-X-MAP:URI="init2.mp4"',
      's6.m4s',
      's7.m4s',
    ]);
  });

  test('counts the discontinuities that have left it', () => {
    expect(tags(from(4)).slice(0, 4)).toEqual([
      '#EXT-X-MEDIA-SEQUENCE:4',
      '#EXT-X-DISCONTINUITY',
      '#EXT-X-MAP:URI="init1.mp4"',
      's4.m4s',
    ]);
    expect(tags(from(5)).slice(0, 4)).toEqual([
      '#EXT-X-MEDIA-SEQUENCE:5',
      '#EXT-X-DISCONTINUITY-SEQUENCE:1',
      '#EXT-X-MAP:URI="init1.mp4"',
      's5.m4s',
    ]);
    expect(tags(from(7))[1]).toBe('#EXT-X-DISCONTINUITY-SEQUENCE:2');
  });

  test('announces it before the parts of the growing segment too', () => {
    const text = mediaPlaylist({ ...live(0, 4, 0), open: moved(4), nextPart: null });
    expect(text).toMatch(/s3\.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="init1\.mp4"\n.*\n#EXT-X-PART:/);
  });
});

test('lists only segments without low latency', () => {
  const text = mediaPlaylist({ ...live(3, 2, 4), lowLatency: false }, { delta: true });
  expect(text).not.toMatch(/PART|PRELOAD|SERVER-CONTROL|SKIP/);
  expect(valuesOf(text, /^(s\d+\.m4s)$/gm)).toEqual(['s3.m4s', 's4.m4s']);
});

test('is complete once ended: a recording if it lists everything from the start', () => {
  const ended = { ...live(0, 2, 0), open: null, nextPart: null, ended: true };
  const text = mediaPlaylist(ended);
  expect(text).toContain('#EXT-X-PLAYLIST-TYPE:VOD');
  expect(text.endsWith('s1.m4s\n#EXT-X-ENDLIST\n')).toBe(true);
  expect(text).not.toMatch(/EXT-X-PART|PRELOAD/);
  expect(mediaPlaylist({ ...ended, segments: [segment(5)] })).not.toContain('VOD');
});

test('the master playlist names the codecs, the picture and the media playlist', () => {
  const text = masterPlaylist({ codecs: 'avc1.42c01f,mp4a.40.2', mediaPlaylist: 'main.m3u8' });
  expect(text).toContain('CODECS="avc1.42c01f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=30.000\nmain.m3u8\n');
});
