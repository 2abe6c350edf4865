import { describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { LiveStream, type LiveStreamOptions } from './live-stream.js';
import { MAX_WAITING } from './waiters.js';

class Stage {
  readonly written: string[] = [];
  readonly contents = new Map<string, string>();
  readonly removed: string[] = [];
  readonly clock = new ManualClock();
  readonly stream: LiveStream;
  readonly abort = new AbortController();
  #segment = 0;
  #part = 0;

  constructor(options: Partial<LiveStreamOptions> = {}) {
    this.stream = new LiveStream({
      lowLatency: true,
      targetWindowSeconds: null,
      persistent: false,
      files: {
        write: (name, data) => {
          this.written.push(name);
          this.contents.set(name, data.toString());
        },
        append: (name, data) => {
          this.contents.set(name, this.contents.get(name)! + data.toString());
        },
        remove: (name) => void this.removed.push(name),
      },
      clock: this.clock,
      ...options,
    });
    this.stream.started(Buffer.from('header'), 'avc1.42c01f,mp4a.40.2');
  }

  parts(count: number): this {
    for (let i = 0; i < count; i++) {
      const last = this.#part === 5;
      const data = Buffer.from(`<${this.#segment}.${this.#part}>`);
      const position = { segment: this.#segment, part: this.#part };
      this.stream.append({ ...position, frames: 10, independent: this.#part === 0, last, startedAtMs: 0, data });
      this.#part = last ? 0 : this.#part + 1;
      if (last) this.#segment += 1;
    }
    return this;
  }

  at(segment: number, part?: number, name = 'main.m3u8'): Promise<string> {
    return this.stream.playlistAt(name, { segment, part }, this.abort.signal).then(String);
  }

  part(name: string): Promise<string> {
    return this.stream.part(name, this.abort.signal).then(String);
  }
}

const partOf = (segment: number, part: number): string => `muxed_segment_${segment}_main_${part}_part.m4s`;
const segmentOf = (segment: number): string => `muxed_segment_${segment}_main.m4s`;

async function pending(promise: Promise<unknown>): Promise<boolean> {
  promise.catch(() => undefined);
  const idle = new Promise((resolve) => setImmediate(resolve, 'pending'));
  return (await Promise.race([promise, idle])) === 'pending';
}

describe('a player waiting for a position', () => {
  test('gets the playlist immediately if the part exists, and as soon as it does otherwise', async () => {
    const stage = new Stage().parts(8);
    expect(await stage.at(1, 1)).toContain(partOf(1, 1));
    const waiting = stage.at(1, 2);
    expect(await pending(waiting)).toBe(true);
    stage.parts(1);
    expect(await waiting).toContain(`URI="${partOf(1, 2)}"\n`);
    expect(stage.clock.pending).toBe(0);
  });

  test('gets a delta playlist on request', async () => {
    const stage = new Stage().parts(60);
    expect(await stage.at(9, 5, 'main_delta.m3u8')).toContain('#EXT-X-SKIP');
    expect(await stage.at(9, 5)).not.toContain('#EXT-X-SKIP');
  });

  test('waits for the whole segment when it names no part', async () => {
    const stage = new Stage().parts(11);
    const waiting = stage.at(1);
    expect(await pending(waiting)).toBe(true);
    stage.parts(1);
    expect(await waiting).toContain(`\n${segmentOf(1)}\n`);
  });

  test('waits for the next segment when it names a part past the end of one', async () => {
    const stage = new Stage().parts(12);
    const waiting = stage.at(1, 6);
    expect(await pending(waiting)).toBe(true);
    stage.parts(1);
    expect(await waiting).toContain(partOf(2, 0));
  });

  test('fails after three target durations without progress, and immediately when too far ahead', async () => {
    const stage = new Stage().parts(6);
    const waiting = stage.at(2, 0);
    stage.clock.advance(5_999);
    expect(await pending(waiting)).toBe(true);
    stage.clock.advance(1);
    await expect(waiting).rejects.toMatchObject({ code: 'WAITED_TOO_LONG' });
    await expect(stage.at(4, 0)).rejects.toMatchObject({ code: 'INVALID_NAME' });
    expect(await pending(stage.at(3, 0))).toBe(true);
  });

  test('displaces the longest-waiting player when too many wait', async () => {
    const stage = new Stage().parts(6);
    const [oldest, ...others] = Array.from({ length: MAX_WAITING }, () => stage.at(3, 0));
    expect(await pending(oldest!)).toBe(true);
    const next = stage.at(1, 0);
    await expect(oldest).rejects.toMatchObject({ code: 'TOO_BUSY' });
    stage.parts(1);
    expect(await next).toContain(partOf(1, 0));
    stage.parts(12);
    await Promise.all(others);
    expect(stage.clock.pending).toBe(0);
  });

  test('finds nothing before the first playlist, without low latency, or once the stream is hidden', async () => {
    await expect(new Stage().parts(5).at(0, 0)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(new Stage({ lowLatency: false }).parts(6).at(0, 0)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const stage = new Stage().parts(6);
    const waiting = stage.at(1, 0);
    stage.stream.hide();
    await expect(waiting).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(() => stage.stream.inMemory('index.m3u8')).toThrow('File not found: index.m3u8');
  });

  test('leaves nothing behind when it disconnects', async () => {
    const stage = new Stage().parts(6);
    const waiting = stage.at(1, 0);
    stage.abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(stage.clock.pending).toBe(0);
  });
});

describe('a part', () => {
  test('serves a part from memory for four segments, and waits for it if it is the next one', async () => {
    const stage = new Stage().parts(32);
    expect(await stage.part(partOf(5, 1))).toBe('<5.1>');
    expect(await stage.part(partOf(1, 0))).toBe('<1.0>');
    await expect(stage.part(partOf(0, 5))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const waiting = stage.part(partOf(5, 2));
    expect(await pending(waiting)).toBe(true);
    stage.parts(1);
    expect(await waiting).toBe('<5.2>');
    await expect(stage.part(partOf(5, 5))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(stage.part('x_part.m4s')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('does not find a part that was hinted if the stream ends first', async () => {
    const stage = new Stage().parts(8);
    const waiting = stage.part(partOf(1, 2));
    stage.stream.end();
    await expect(waiting).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('files', () => {
  test('writes segments as the sum of their parts, and playlists once a segment is complete', () => {
    const stage = new Stage({ lowLatency: false }).parts(7);
    expect(stage.written).toEqual(['muxed_header_main_part0_.mp4', segmentOf(0), 'index.m3u8', 'main.m3u8']);
    expect(stage.contents.get(segmentOf(0))).toBe('<0.0><0.1><0.2><0.3><0.4><0.5>');
  });

  test('removes files behind the window, a few segments after they leave the playlist', () => {
    const stage = new Stage({ targetWindowSeconds: 8 }).parts(6 * 12);
    const text = stage.contents.get('main.m3u8')!;
    expect(text).toContain('#EXT-X-MEDIA-SEQUENCE:7\n');
    expect(stage.removed).toEqual([segmentOf(0), segmentOf(1)]);
  });

  test('keeps all files of a persistent stream, and lists them in the final playlist', () => {
    const stage = new Stage({ targetWindowSeconds: 6, persistent: true }).parts(6 * 20 + 2);
    // A recording found after a crash is complete.
    expect(stage.contents.get('main.m3u8')).toContain(segmentOf(0));
    expect(stage.stream.inMemory('main.m3u8')!.toString()).not.toContain(segmentOf(0));
    stage.stream.end();
    const text = stage.contents.get('main.m3u8')!;
    expect(stage.removed).toEqual([]);
    expect(text.match(/^muxed_segment_\d+_main\.m4s$/gm)).toHaveLength(21);
    expect(text).toContain('#EXT-X-PLAYLIST-TYPE:VOD');
    expect(text).toContain('#EXTINF:0.66666,\nmuxed_segment_20_main.m4s\n#EXT-X-ENDLIST\n');
  });

  test('appends one line per segment for a stream that lists everything, and is always complete', () => {
    const stage = new Stage({ lowLatency: false }).parts(6 * 40);
    expect(stage.written.filter((name) => name === 'main.m3u8')).toHaveLength(1);
    const text = stage.contents.get('main.m3u8')!;
    expect(text.startsWith('#EXTM3U\n#EXT-X-VERSION:7\n')).toBe(true);
    expect(text.match(/^muxed_segment_\d+_main\.m4s$/gm)).toEqual(Array.from({ length: 40 }, (_, i) => segmentOf(i)));
    // Players get the same playlist.
    expect(text).toBe(stage.stream.inMemory('main.m3u8')!.toString());
    stage.stream.end();
    expect(stage.contents.get('main.m3u8')).toBe(
      text.replace('#EXT-X-MEDIA', '#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-MEDIA') + '#EXT-X-ENDLIST\n',
    );
  });
});

describe('a stream that lasts for days', () => {
  test('lists everything without a window, and sends most players only the newest part of it', async () => {
    const hours = 3;
    const count = hours * 1_800;
    const stage = new Stage().parts(6 * count);
    const whole = stage.stream.inMemory('main.m3u8')!.toString();
    expect(whole.match(/^muxed_segment_\d+_main\.m4s$/gm)).toEqual(
      Array.from({ length: count }, (_, i) => segmentOf(i)),
    );
    expect(whole).toContain('#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-MAP');
    const delta = await stage.at(count - 1, 5, 'main_delta.m3u8');
    expect(delta.length).toBeLessThan(5_000);
    const [, skipped] = /#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)/.exec(delta)!;
    expect(Number(skipped) + delta.match(/#EXTINF/g)!.length).toBe(count);
    expect(delta).toContain(`\n${segmentOf(Number(skipped))}\n`);
    // About a hundred bytes per two seconds, without the segments themselves.
    expect(whole.length / count).toBeLessThan(120);
  });

  test('keeps what a recording needs of segments that have left the window', () => {
    const stage = new Stage({ targetWindowSeconds: 8, persistent: true }).parts(6 * 500);
    expect(stage.stream.inMemory('main.m3u8')!.toString()).toContain('#EXT-X-MEDIA-SEQUENCE:495\n');
    stage.stream.end();
    const names = stage.contents.get('main.m3u8')!.match(/^muxed_segment_\d+_main\.m4s$/gm);
    expect(names).toEqual(Array.from({ length: 500 }, (_, i) => segmentOf(i)));
    expect(stage.removed).toEqual([]);
  });
});
