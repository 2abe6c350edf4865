// A stream whose room moves to another node.
import { describe, expect, test } from '@jest/globals';
import type { StreamProgress } from '@bloom/rooms';
import { ManualClock } from '@bloom/time/testing';
import { fetchFormer, type FormerStream } from './former-stream.js';
import { LiveStream, type LiveStreamOptions } from './live-stream.js';

/** The stream on one node, and the files that it has written. */
class Side {
  readonly files = new Map<string, string>();
  readonly removed: string[] = [];
  readonly stream: LiveStream;
  #parts = 0;

  constructor(
    readonly node: string,
    options: Partial<LiveStreamOptions> = {},
  ) {
    this.stream = new LiveStream({
      lowLatency: true,
      targetWindowSeconds: null,
      persistent: false,
      files: {
        write: (name, data) => void this.files.set(name, data.toString()),
        append: (name, data) => void this.files.set(name, this.files.get(name)! + data.toString()),
        remove: (name) => void this.removed.push(name),
      },
      clock: new ManualClock(),
      ...options,
    });
  }

  /** Adds so many parts of a compositor, which begins with segment 0. */
  parts(count: number): this {
    if (this.#parts === 0) this.stream.started(Buffer.from(`header of ${this.node}`), 'avc1.42c01f,mp4a.40.2');
    for (let i = 0; i < count; i++) {
      const [segment, part] = [Math.floor(this.#parts / 6), this.#parts % 6];
      this.#parts += 1;
      const data = Buffer.from(`<${this.node} ${segment}.${part}>`);
      const about = { frames: 10, independent: part === 0, last: part === 5, startedAtMs: 1_000.25 };
      this.stream.append({ segment, part, ...about, data });
    }
    return this;
  }

  get playlist(): string {
    return this.text('main.m3u8') ?? '';
  }

  /** Content of a file, from memory or from the disk. */
  text(name: string): string | undefined {
    return this.stream.inMemory(name)?.toString() ?? this.files.get(name);
  }

  get names(): string[] {
    return this.playlist.match(/^muxed_segment_\d+_main\.m4s$/gm) ?? [];
  }
}

const { signal } = new AbortController();

function fetchFrom(side: Side, changes: Partial<StreamProgress> = {}, whole = false): Promise<FormerStream> {
  const progress = { ...side.stream.progress()!, ...changes };

  return fetchFormer(JSON.parse(JSON.stringify(progress)) as StreamProgress, {
    timeoutMs: 1_000,
    ...(whole ? { fetchStored: async (name) => Buffer.from(side.files.get(name)!) } : {}),
    fetch: async (name) => {
      const text = side.text(name);
      if (text === undefined) throw new Error(`File not found: ${name}`);
      return Buffer.from(text);
    },
  });
}

async function move(from: Side, to: string, options: Partial<LiveStreamOptions> = {}): Promise<Side> {
  from.stream.freeze(true);

  return new Side(to, { ...options, former: await fetchFrom(from) });
}

const segmentOf = (segment: number): string => `muxed_segment_${segment}_main.m4s`;

describe('a stream that moves', () => {
  test('shows nothing new during the move, and everything if it is given up', () => {
    const a = new Side('a').parts(8);
    const before = a.playlist;
    a.stream.freeze(true);
    a.parts(7);
    expect(a.playlist).toBe(before);
    a.stream.freeze(false);
    expect(a.playlist).toContain('muxed_segment_2_main_2_part.m4s"');
    expect(a.text(segmentOf(1))).toBe('<a 1.0><a 1.1><a 1.2><a 1.3><a 1.4><a 1.5>');
  });

  test('goes on with the next media sequence number after a discontinuity, with its own header', async () => {
    const a = new Side('a').parts(26);
    const b = await move(a, 'b');
    expect(b.names).toEqual([0, 1, 2, 3, 4].map(segmentOf));
    // Players count the next segment to the new stretch before they see it.
    expect(b.playlist.endsWith(`${segmentOf(4)}\n#EXT-X-DISCONTINUITY\n`)).toBe(true);
    b.parts(8);
    expect(b.names).toEqual([0, 1, 2, 3, 4, 5].map(segmentOf));
    expect(b.playlist).toContain(
      `\n${segmentOf(4)}\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="muxed_header_main_part1_.mp4"\n`,
    );
    expect(b.playlist.match(/DISCONTINUITY/g)).toHaveLength(1);
    expect(b.playlist).toContain('PRELOAD-HINT:TYPE=PART,URI="muxed_segment_6_main_2_part.m4s"');
    expect(b.text('muxed_header_main_part0_.mp4')).toBe('header of a');
    expect(b.text('muxed_header_main_part1_.mp4')).toBe('header of b');
    expect(b.text(segmentOf(5))).toBe('<b 0.0><b 0.1><b 0.2><b 0.3><b 0.4><b 0.5>');
  });

  test('ends the growing segment with the parts that viewers have seen', async () => {
    const a = new Side('a').parts(26);
    const seen = a.playlist.match(/"muxed_segment_4_main_\d_part\.m4s"/g);
    const b = await move(a, 'b');
    a.parts(3);
    expect(b.text(segmentOf(4))).toBe('<a 4.0><a 4.1>');
    expect(b.playlist).toContain(`#EXTINF:0.66666,\n${segmentOf(4)}\n`);
    // The last one is the hint.
    expect(b.playlist.match(/"muxed_segment_4_main_\d_part\.m4s"/g)).toEqual(seen?.slice(0, -1));
    expect((await b.stream.part('muxed_segment_4_main_1_part.m4s', signal)).toString()).toBe('<a 4.1>');
  });

  test('is asked by viewers of its former node for what comes next', async () => {
    const a = new Side('a').parts(26);
    const waiting = a.stream.playlistAt('main.m3u8', { segment: 4, part: 2 }, signal);
    const b = await move(a, 'b');
    a.stream.hide({ movedAway: true });
    await expect(waiting).rejects.toMatchObject({ code: 'MOVED' });
    expect(() => a.stream.inMemory(segmentOf(4))).toThrow(expect.objectContaining({ code: 'MOVED' }));
    expect((await b.stream.playlistAt('main.m3u8', { segment: 4, part: 2 }, signal)).toString()).toContain(
      segmentOf(4),
    );
    const next = b.stream.playlistAt('main.m3u8', { segment: 5, part: 0 }, signal);
    b.parts(1);
    expect((await next).toString()).toContain('"muxed_segment_5_main_0_part.m4s"');
  });

  test('takes at most the newest six segments along, and only what is still listed', async () => {
    const long = await move(new Side('a').parts(6 * 30 + 1), 'b');
    expect(long.names).toEqual([25, 26, 27, 28, 29, 30].map(segmentOf));
    expect(long.playlist).toContain('#EXT-X-MEDIA-SEQUENCE:25\n');
    const short = { targetWindowSeconds: 6 };
    expect((await move(new Side('a', short).parts(6 * 30 + 1), 'b', short)).names).toHaveLength(5);
  });

  test('lists the same on the disk as in memory', async () => {
    const b = (await move(new Side('a').parts(26), 'b', { lowLatency: false })).parts(6 * 20);
    expect(b.files.get('main.m3u8')).toBe(b.playlist);
    expect(b.playlist.match(/DISCONTINUITY/g)).toHaveLength(1);
    const windowed = { lowLatency: false, targetWindowSeconds: 8 };
    const c = (await move(new Side('a', windowed).parts(60), 'c', windowed)).parts(6 * 20);
    expect(c.files.get('main.m3u8')).toBe(c.playlist);
    expect(c.playlist).toContain('#EXT-X-DISCONTINUITY-SEQUENCE:1\n');
    expect(c.removed).toContain(segmentOf(9));
  });

  test('moves again, before or after it has made a segment of its own', async () => {
    const whole = { lowLatency: false };
    const early = (await move(await move(new Side('a', whole).parts(26), 'b', whole), 'c', whole)).parts(6);
    expect(early.playlist).toContain('part1_.mp4');
    expect(early.playlist.match(/DISCONTINUITY/g)).toHaveLength(1);
    const b = await move(new Side('a').parts(26), 'b');
    const late = (await move(b.parts(7), 'c')).parts(6);
    expect(late.playlist.match(/#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="muxed_header_main_part\d/g)).toEqual([
      '#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="muxed_header_main_part1',
      '#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="muxed_header_main_part2',
    ]);
    expect(late.text('muxed_header_main_part1_.mp4')).toBe('header of b');
    expect(late.text(segmentOf(6))).toBe('<b 1.0>');
  });

  test('moves again with low latency before it has made anything of its own', async () => {
    const c = (await move(await move(new Side('a').parts(26), 'b'), 'c')).parts(6);
    expect(c.names).toEqual([0, 1, 2, 3, 4, 5].map(segmentOf));
    expect(c.playlist.match(/DISCONTINUITY/g)).toHaveLength(1);
  });

  test('tells its next node whole numbers only, as messages between nodes have them', () => {
    const { segments, next } = new Side('a').parts(26).stream.progress()!;
    const numbers = segments.flatMap(({ startedAtMs, parts, header }) => [
      startedAtMs,
      header,
      ...parts.flatMap(({ frames, bytes }) => [frames, bytes]),
    ]);
    expect([next, ...numbers].filter((value) => !Number.isInteger(value))).toEqual([]);
  });

  test('shows the first part of the next segment first with low latency, because players know that segment', async () => {
    const a = new Side('a').parts(12);
    const frozen = a.stream.freeze(true);
    a.parts(3);
    await frozen;
    const b = new Side('b', { former: await fetchFrom(a) });
    expect(b.names).toEqual([0, 1, 2].map(segmentOf));
    expect(b.text(segmentOf(2))).toBe('<a 2.0>');
    const whole = { lowLatency: false };
    expect((await move(new Side('a', whole).parts(12), 'b', whole)).names).toEqual([0, 1].map(segmentOf));
  });

  test('stays between two segments with low latency if the next part is late', async () => {
    const clock = new ManualClock();
    const { stream } = new Side('a', { clock }).parts(12);
    expect(stream.progress()).toMatchObject({ next: 2 });
    const frozen = stream.freeze(true);
    clock.advance(400);
    await frozen;
    expect(() => stream.progress()).toThrow('between two segments');
  });

  test('goes on between two segments if the move is given up or the stream ends before the next part', async () => {
    for (const giveUp of [(a: Side) => a.stream.freeze(false), (a: Side) => a.stream.hide()]) {
      const a = new Side('a').parts(12);
      const frozen = a.stream.freeze(true);
      await giveUp(a);
      await frozen;
      a.parts(2);
      expect(a.stream.progress()?.segments.at(-1)?.parts).toHaveLength(2);
    }
  });

  test('begins anew if nobody can have seen it', () => {
    expect(new Side('a').parts(5).stream.progress()).toBeUndefined();
  });

  test('writes nothing more on the node that it has left', async () => {
    const a = new Side('a').parts(26);
    await move(a, 'b');
    const before = [...a.files];
    a.stream.hide({ movedAway: true });
    a.parts(12);
    a.stream.end();
    expect([...a.files]).toEqual(before);
  });
});

describe('a kept stream that moves', () => {
  const kept = { persistent: true, lowLatency: false };
  const listed = (playlist: string | undefined): string[] => playlist?.match(/^muxed_segment_\d+_main\.m4s$/gm) ?? [];
  const upTo = (last: number): string[] => Array.from({ length: last + 1 }, (_, n) => segmentOf(n));

  async function moveKept(from: Side, to: string, options: Partial<LiveStreamOptions> = kept) {
    await from.stream.freeze(true);
    const former = await fetchFrom(from, {}, true);

    return { side: new Side(to, { ...options, former }), earlier: former.stored!.earlier };
  }

  test.each([null, 8])(
    'is listed as one from its beginning, on the disk and at its end (window %s)',
    async (window) => {
      const options = { ...kept, targetWindowSeconds: window };
      const a = new Side('a', options).parts(6 * 30 + 2);
      const { side: b, earlier } = await moveKept(a, 'b', options);
      expect(b.names[0]).toBe(segmentOf(25));
      expect(listed(b.files.get('main.m3u8'))).toEqual(upTo(30).slice(25));
      expect(earlier.map(({ name }) => name)).toEqual(upTo(24));
      b.parts(6);
      b.stream.adopt(earlier);
      b.parts(6 * 11);
      // The media sequence number of viewers never decreases.
      const [, now] = /MEDIA-SEQUENCE:(\d+)/.exec(b.playlist)!;
      expect(Number(now)).toBeGreaterThanOrEqual(25);
      expect(listed(b.files.get('main.m3u8'))).toEqual(upTo(42));
      b.parts(2).stream.end();
      const end = b.files.get('main.m3u8')!;
      expect(listed(end)).toEqual(upTo(43));
      expect(end.match(/#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="muxed_header_main_part1_.mp4"/g)).toHaveLength(1);
      expect(end.match(/DISCONTINUITY/g)).toHaveLength(1);
      expect(end).toContain('#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-MEDIA-SEQUENCE:0\n');
      // Each segment is listed as its node did.
      const before = a.files.get('main.m3u8')!;
      expect(end).toContain(before.slice(before.indexOf('#EXT-X-MAP')));
    },
  );

  test('is complete as well if the earlier files arrive after its end', async () => {
    const { side: b, earlier } = await moveKept(new Side('a', kept).parts(6 * 20), 'b');
    b.parts(6).stream.end();
    b.stream.adopt(earlier);
    expect(listed(b.files.get('main.m3u8'))).toEqual(upTo(20));
    expect(b.files.get('main.m3u8')).toMatch(/#EXT-X-ENDLIST\n$/);
  });

  test('begins with the earliest segment that has arrived', async () => {
    const { side: b, earlier } = await moveKept(new Side('a', kept).parts(6 * 20), 'b');
    b.stream.adopt(earlier.slice(10));
    b.parts(6).stream.end();
    expect(listed(b.files.get('main.m3u8'))).toEqual(upTo(20).slice(10));
    expect(b.files.get('main.m3u8')).toContain('#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-MAP');
  });

  test('moves again only once the earlier files have arrived, and then with all of them', async () => {
    const { side: b, earlier } = await moveKept(new Side('a', kept).parts(6 * 20), 'b');
    expect(() => b.stream.progress()).toThrow('not all files of its stream have come');
    b.stream.adopt(earlier);
    const { side: c, earlier: ofBoth } = await moveKept(b.parts(6 * 10), 'c');
    expect(ofBoth.map(({ name }) => name)).toEqual(upTo(23));
    c.stream.adopt(ofBoth);
    c.parts(6).stream.end();
    expect(listed(c.files.get('main.m3u8'))).toEqual(upTo(30));
    const maps = c.files.get('main.m3u8')?.match(/MAP:URI="muxed_header_main_part\d/g);
    expect(maps?.map((map) => map.at(-1))).toEqual(['0', '1', '2']);
  });

  test('goes on in the directory of both nodes without touching what is there', async () => {
    const a = new Side('a', kept).parts(6 * 20 + 3);
    await a.stream.freeze(true);
    const former = await fetchFrom(a, {}, true);
    const shared = { ...former, stored: { ...former.stored!, isShared: true } };
    const b = new Side('b', { ...kept, former: shared });
    expect([...b.files.keys()]).toEqual([segmentOf(20), 'index.m3u8', 'main.m3u8']);
    expect(listed(b.files.get('main.m3u8'))).toEqual(upTo(20));
    expect(b.stream.progress()).toMatchObject({ next: 21 });
  });
});

describe('the end of a stream on another node', () => {
  const a = new Side('a').parts(26);
  a.stream.freeze(true);
  const progress = a.stream.progress()!;

  test('is refused without one of its files', async () => {
    await expect(fetchFrom(a, { next: 9 })).rejects.toThrow(/File not found/);
  });

  test('is refused with a segment of another size than announced', async () => {
    const segments = progress.segments.map((segment) => ({ ...segment, parts: segment.parts.slice(1) }));
    await expect(fetchFrom(a, { segments })).rejects.toThrow(/a segment has \d+ bytes, not \d+/);
  });

  test('is refused after the time limit, and no longer fetched', async () => {
    const signals: AbortSignal[] = [];
    const never = (_name: string, _maxBytes: number, ending: AbortSignal): Promise<Buffer> => {
      signals.push(ending);
      return new Promise(() => undefined);
    };
    await expect(fetchFormer(progress, { timeoutMs: 10, fetch: never })).rejects.toThrow('within 10 ms');
    expect(signals).toHaveLength(6);
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  test('asks for no more bytes than were announced', async () => {
    const asked: number[] = [];
    await fetchFormer(progress, {
      timeoutMs: 1_000,
      fetch: async (name, maxBytes) => {
        asked.push(maxBytes);
        return a.stream.inMemory(name)!;
      },
    });
    expect(asked.toSorted((x, y) => x - y).slice(0, -1)).toEqual([14, 42, 42, 42, 42]);
  });
});
