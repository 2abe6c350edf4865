import { createServer, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { ManualClock, until } from '@bloom/time/testing';
import type { ComponentHost, ComponentReport } from '@bloom/rooms';
import { TestRoom } from '../testing/room.js';
import type { RtspComponent } from './rtsp-component.js';
import { rtspKind } from './rtsp-kind.js';

const entry = new URL('../testing/source-rig.mjs', import.meta.url);
const context = { roomId: 'kitchen', videoCodec: 'h264' } as const;

interface Inspection {
  state: string;
  processId: number;
  connections: number;
  lostReason: string | null;
}

const processes = new Processes({ log: silentLog });
let clock: ManualClock;
let room: TestRoom;
let component: RtspComponent;
let logged: [string, object | undefined][];

beforeEach(() => {
  clock = new ManualClock();
  room = new TestRoom(clock);
  logged = [];
});
afterEach(() => component?.close());

// Its port is all that the component itself sees of a source.
const camera = createServer();
let cameraPort: number;
beforeAll(async () => {
  await new Promise<void>((done) => camera.listen(0, '127.0.0.1', done));
  cameraPort = (camera.address() as AddressInfo).port;
});
afterAll(() => new Promise((done) => camera.close(done)));

/** Starts a component whose process is the rig. */
async function start(path: string, options: object = {}, resumed: Pick<ComponentHost, 'resumed'> = {}): Promise<void> {
  // Node.js alone may take more than a second to start on a busy machine, and is silent until then.
  const kind = rtspKind({ processes, entry, clock, random: () => 0, hangMs: 4_000 });
  const sourceUri = `rtsp://admin:secret@camera.localhost:${cameraPort}/${path}`;
  const prepared = await kind.prepare({ sourceUri, reconnectDelay: 5_000, ...options }, context);
  const log = {
    ...room.host.log,
    info: (event: string, fields?: object) => void logged.push([event, fields]),
    warn: (event: string, fields?: object) => void logged.push([event, fields]),
  };
  component = prepared.start({ ...room.host, ...resumed, log }) as RtspComponent;
}

const inspect = (): Inspection => component.inspect() as Inspection;
const inState = (state: string, connections = 1): Promise<number> =>
  until(() => inspect().state === state && inspect().connections === connections);
/** Waits until the source has been found reachable and the component connects to it. */
const connects = (connections: number): Promise<number> => until(() => inspect().connections === connections);
const done = (what: ComponentReport['do']): ComponentReport[] => room.reports.filter((report) => report.do === what);

describe('options of an RTSP component', () => {
  const refusal = async (options: Record<string, unknown>): Promise<string> => {
    try {
      return JSON.stringify((await rtspKind({ processes }).prepare(options, context)).properties);
    } catch (error) {
      const { code, message } = error as { code: string; message: string };
      return `${code} ${message}`;
    }
  };

  test('applies defaults, and shows the address without credentials', async () => {
    expect(await refusal({ sourceUri: 'rtsp://user:pass@cam/1' })).toBe(
      '{"sourceUri":"rtsp://***@cam/1","rtpPort":20000,"reconnectDelay":15000,"keepAliveInterval":15000,"pierceNat":true}',
    );
  });

  test('checks the options', async () => {
    const sourceUri = 'rtsp://cam/';
    expect(await refusal({})).toBe('MISSING_OPTION Required field "sourceUri" missing');
    for (const wrong of [
      { sourceUri: 7 },
      { sourceUri: 'file:///etc/passwd' },
      { sourceUri: 'http://cam/live.m3u8' },
      { sourceUri, rtpPort: 0 },
      { sourceUri, rtpPort: 65_536 },
      { sourceUri, rtpPort: '20000' },
      { sourceUri, reconnectDelay: -1 },
      { sourceUri, keepAliveInterval: 0.5 },
      { sourceUri, pierceNat: 'yes' },
    ]) {
      expect(await refusal(wrong)).toBe('INVALID_OPTIONS Invalid request body structure');
    }
  });
});

describe('an RTSP component', () => {
  test('publishes each track with its first frame', async () => {
    await start('play');
    await until(() => room.sent.length === 3);
    expect(room.deeds).toEqual(['open h264', 'open opus']);
    expect(done('publish')).toMatchObject([
      { tracks: [{ kind: 'video', codec: 'h264', metadata: null }] },
      { tracks: [{ kind: 'audio', codec: 'opus', metadata: null }] },
    ]);
    expect(room.sent.map(({ timestamp }) => timestamp)).toEqual([0, 960, 3_600]);
    expect(inspect()).toMatchObject({
      state: 'playing',
      source: `rtsp://***@camera.localhost:${cameraPort}/play`,
      connections: 1,
    });
    await component.close();
    expect(room.deeds).toEqual(['open h264', 'open opus', 'close', 'close']);
    expect(clock.pending).toBe(0);
  });

  test('publishes its tracks under their former ids when its room has moved', async () => {
    const tracks = [
      { trackId: 'sound', kind: 'audio', metadata: null },
      { trackId: 'pictures', kind: 'video', metadata: null },
    ] as const;
    await start('play', {}, { resumed: { tracks, progress: {} } });
    await until(() => room.sent.length === 3);
    expect(done('publish')).toMatchObject([
      { tracks: [{ trackId: 'pictures', kind: 'video' }] },
      { tracks: [{ trackId: 'sound', kind: 'audio' }] },
    ]);
  });

  test('withdraws its tracks when the source is lost, and reconnects after the delay, without limit', async () => {
    await start('lost');
    for (let connection = 1; connection <= 3; connection++) {
      await inState('waiting', connection);
      expect(done('unpublish')).toHaveLength(connection);
      clock.advance(4_999);
      expect(inspect().connections).toBe(connection);
      clock.advance(1);
      await connects(connection + 1);
    }
    const ids = room.reports.flatMap((report) =>
      report.do === 'publish' ? report.tracks.map(({ trackId }) => trackId) : [],
    );
    expect(new Set(ids).size).toBe(3);
  });

  test('connects at most once per second', async () => {
    await start('lost', { reconnectDelay: 0 });
    await inState('waiting');
    clock.advance(999);
    expect(inspect().connections).toBe(1);
    clock.advance(1);
    await connects(2);
  });

  test('leaves a source alone that takes too much memory, twice as long each time, up to an hour', async () => {
    await start('costly');
    for (const [at, seconds] of [60, 120, 240, 480, 960, 1_920, 3_600, 3_600].entries()) {
      await inState('waiting', at + 1);
      clock.advance(seconds * 1_000 - 1);
      expect(inspect().connections).toBe(at + 1);
      clock.advance(1);
    }
    await connects(9);
  });

  test('checks an unreachable source without a process until it is reachable', async () => {
    const server = createServer();
    const listen = (port: number): Promise<number> =>
      new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
    const port = await listen(0);
    await new Promise((resolve) => server.close(resolve));
    await start('', { sourceUri: `rtsp://127.0.0.1:${port}/lost`, reconnectDelay: 0 });
    await inState('waiting');
    for (const delay of [1_000, 1_000, 2_000, 4_000, 5_000]) {
      clock.advance(delay);
      await until(() => inspect().lostReason === 'Connection refused' && clock.pending === 1);
    }
    expect(inspect().connections).toBe(1);
    await listen(port);
    clock.advance(5_000);
    await inState('waiting', 2);
    server.close();
  });

  test('delays connections that keep failing, and starts over after one that lasted', async () => {
    await start('crash', { reconnectDelay: 0 });
    for (const [i, delay] of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      await inState('waiting', i + 1);
      clock.advance(delay - 1);
      expect(inspect().connections).toBe(i + 1);
      clock.advance(1);
      await connects(i + 2);
    }
  });

  test('survives the crash of its process', async () => {
    await start('crash');
    await inState('waiting');
    expect(inspect().lostReason).toContain('SIGABRT');
    clock.advance(5_000);
    await connects(2);
  });

  test('kills a process that hangs', async () => {
    await start('play');
    await inState('playing');
    const { processId } = inspect();
    process.kill(processId, 'SIGSTOP');
    await inState('waiting');
    expect(inspect().lostReason).toContain('nothing for 4000 ms');
    await component.close();
    expect(() => process.kill(processId, 0)).toThrow('ESRCH');
  });

  test('crashes when the source sends media that rooms do not accept', async () => {
    await start('refused');
    expect(await room.until('crashed')).toMatchObject({ reason: 'the source sends H.265 (hevc)' });
    expect(inspect().state).toBe('failed');
    expect(clock.pending).toBe(0);
  });

  test('continues without sound that cannot be converted', async () => {
    await start('mute');
    await until(() => logged.length === 2);
    expect(logged[1]).toEqual(['rtsp.no_sound', expect.objectContaining({ reason: expect.stringContaining('cook') })]);
    expect(inspect().state).toBe('playing');
  });

  test('warns about options without effect, unless they have their defaults', async () => {
    await start('stream', { keepAliveInterval: 15_000, pierceNat: true });
    expect(logged.filter(([event]) => event === 'rtsp.option_without_effect')).toEqual([]);
    await component.close();
    await start('stream', { keepAliveInterval: 5_000, pierceNat: false });
    expect(logged.filter(([event]) => event === 'rtsp.option_without_effect')).toEqual([
      ['rtsp.option_without_effect', { option: 'keepAliveInterval', value: 5_000 }],
      ['rtsp.option_without_effect', { option: 'pierceNat', value: false }],
    ]);
  });

  test('logs a source that stays away once, and without its credentials', async () => {
    await start('crash');
    for (let connection = 1; connection <= 3; connection++) {
      await inState('waiting', connection);
      clock.advance(5_000);
    }
    expect(logged.map(([event]) => event)).toEqual(['rtsp.lost']);
    expect(JSON.stringify([logged, inspect(), room.reports])).not.toMatch(/admin|secret/);
  });
});
