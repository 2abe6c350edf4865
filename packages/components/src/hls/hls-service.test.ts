import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { silentLog } from '@bloom/log';
import type { ComponentProgress } from '@bloom/rooms';
import { systemClock } from '@bloom/time';
import { Processes } from '@bloom/processes';
import { ManualClock, until as untilWithin } from '@bloom/time/testing';
import { TestRoom } from '../testing/room.js';
import type { HlsComponent } from './hls-component.js';
import type { HlsServiceOptions } from './hls-options.js';
import { HlsService } from './hls-service.js';

const engineEntry = new URL('../../dist/hls/engine/engine-main.js', import.meta.url);
const composes = ((): boolean => {
  try {
    return createRequire(import.meta.url).resolve('node-av/lib') !== '';
  } catch {
    process.stderr.write('*** node-av is not installed, so the tests with a compositor are SKIPPED. ***\n');
    return false;
  }
})();
const withCompositor = composes ? describe : describe.skip;
/** A segment takes 2 s and starts a process, which gets few turns on a busy machine. */
const SEGMENT_MS = 60_000;
const until = (condition: () => unknown): Promise<number> => untilWithin(condition, SEGMENT_MS);
jest.setTimeout(180_000);

const silence = Buffer.from('f8fffe', 'hex');
const signal = new AbortController().signal;
const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', region: 'eu-central-1', bucket: 'streams' };

class Stage {
  readonly notified: string[] = [];
  readonly begun: string[] = [];
  readonly ended: string[] = [];
  readonly room = new TestRoom(systemClock);
  service!: HlsService;
  component!: HlsComponent;
  path = '';
  held = 0;
  #timer: NodeJS.Timeout | undefined;

  async open(options: Partial<HlsServiceOptions> = {}): Promise<this> {
    this.path = options.resourcesPath ?? (await mkdtemp(join(tmpdir(), 'bloom-hls-')));
    this.service = new HlsService({
      resourcesPath: this.path,
      s3Endpoint: null,
      beginRecording: async (id) => {
        this.begun.push(id);
        const path = join(this.path, 'recordings', id);
        if (existsSync(path)) await rename(path, `${path}-aside`);
      },
      endRecording: (id) => void this.ended.push(id),
      notify: ({ type }) => void this.notified.push(type),
      hold: () => {
        this.held += 1;
        return () => void (this.held -= 1);
      },
      log: silentLog,
      processes: new Processes({ log: silentLog }),
      engineEntry,
      ...options,
    });
    return this;
  }

  async start(options: Record<string, unknown> = {}, progress?: ComponentProgress): Promise<void> {
    const former = progress === undefined ? undefined : { node: 'former', progress };
    const prepared = await this.service.kind.prepare(options, { roomId: 'kitchen', videoCodec: 'h264' }, former);
    const resumed = progress === undefined ? {} : { resumed: { tracks: [], progress } };
    this.component = prepared.start({ ...this.room.host, ...resumed }) as HlsComponent;
  }

  /** Directories of streams that are not kept. */
  get temporary(): string[] {
    const path = join(this.path, 'temporary_hls');
    return existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [];
  }

  /** Sends silence, 50 packets a second. */
  speak(): void {
    this.component.receive([
      {
        origin: 'ann',
        originType: 'webrtc',
        originMetadata: null,
        track: { trackId: 'a', kind: 'audio', codec: 'opus', metadata: null, encodings: [], disabledEncodings: [] },
      },
    ]);
    let timestamp = 0;
    this.#timer = setInterval(() => void this.room.frame('a', { data: silence, timestamp: (timestamp += 960) }), 20);
  }

  async bytes(fileName: string): Promise<Buffer> {
    const located = await this.service.locate({ roomId: 'kitchen', fileName, waitFor: undefined, signal });
    return 'bytes' in located ? located.bytes : readFile(join(located.directory, fileName));
  }

  async file(fileName: string): Promise<string> {
    return (await this.bytes(fileName)).toString();
  }

  async playlist(): Promise<string> {
    let master: string | undefined;
    await until(async () => (master = await this.file('index.m3u8').catch(() => undefined)) !== undefined);
    return this.file(master!.trim().split('\n').at(-1)!);
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.component?.close();
    this.service.roomEnded('kitchen');
    await this.service.settled();
  }
}

const stages: Stage[] = [];
const servers: Server[] = [];

async function stageWith(options: Partial<HlsServiceOptions> = {}): Promise<Stage> {
  const stage = await new Stage().open(options);
  stages.push(stage);
  return stage;
}

/** A node on the same disk that fetches streams from the giver. */
function takerOf(giver: Stage): Promise<Stage> {
  return stageWith({
    resourcesPath: giver.path,
    fetch: ({ fileName }) => giver.bytes(fileName),
  });
}

/** Starts a store that accepts uploads or answers them with this status. */
async function store(status: number, objects: string[]): Promise<string> {
  const server = createServer((request, response) => {
    if (status === 200) objects.push(`${request.url?.split('?')[0]} ${request.headers['content-type']}`);
    request.resume().on('end', () => response.writeHead(status, { etag: '"x"' }).end());
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

afterEach(async () => {
  // Stages share directories, and write to them until they have ended.
  for (const stage of stages) await stage.end();
  for (const { path } of stages.splice(0)) await rm(path, { recursive: true, force: true });
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

withCompositor('stream [needs node-av]', () => {
  test('continues in black while a participant is silent, is served, and ends with its room', async () => {
    const stage = await stageWith();
    await stage.start();
    await expect(stage.file('index.m3u8')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    stage.speak();
    expect(await stage.playlist()).toContain('#EXTINF:1.99998,\nmuxed_segment_0_main.m4s\n');
    expect(await stage.file('index.m3u8')).toContain('main.m3u8');
    expect(stage.temporary).toHaveLength(1);
    expect(stage.room.reports).toEqual([]);
    expect(stage.component.inspect()).toMatchObject({
      // Black does not count as a picture.
      state: 'starting',
      processId: stage.component.pid,
      parts: expect.any(Number),
      newestPartAt: expect.any(Number),
    });

    await stage.component.close();
    await expect(stage.file('index.m3u8')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(stage.temporary).toHaveLength(1);
    await stage.end();
    expect(stage.temporary).toEqual([]);
    expect(stage.notified).toEqual([]);
  });

  test('is removed even when a new room with that id keeps its own stream', async () => {
    const stage = await stageWith();
    await stage.start();
    stage.speak();
    await stage.playlist();
    const former = stage.component.close();
    stage.service.roomEnded('kitchen');
    await stage.start({ persistent: true });
    await former;
    await stage.service.settled();
    expect(stage.temporary).toEqual([]);
  });

  test('keeps an earlier recording untouched until the new one has a segment, and then keeps both', async () => {
    const stage = await stageWith();
    const former = join(stage.path, 'recordings', 'kitchen');
    await mkdir(former, { recursive: true });
    await writeFile(join(former, 'index.m3u8'), 'of yesterday');

    await stage.start({ persistent: true });
    expect(stage.service.isLive('kitchen')).toBe(false);
    await stage.end();
    expect(await readdir(former)).toEqual(['index.m3u8']);
    expect(stage.begun).toEqual([]);

    await stage.start({ persistent: true });
    stage.speak();
    await stage.playlist();
    await until(() => existsSync(join(former, 'main.m3u8')));
    expect(stage.service.isLive('kitchen')).toBe(true);
    await stage.end();
    expect(stage.begun).toEqual(['kitchen']);
    expect(await readFile(join(`${former}-aside`, 'index.m3u8'), 'utf8')).toBe('of yesterday');
    expect(await readdir(former)).toContain('muxed_segment_0_main.m4s');
  });

  test('leaves nothing behind when nobody published, even if it is to be kept', async () => {
    const stage = await stageWith();
    await stage.start({ persistent: true });
    await stage.end();
    expect(existsSync(join(stage.path, 'recordings'))).toBe(false);
    expect(stage.ended).toEqual([]);
  });

  test('becomes a finished recording when its room ends, if it is to be kept', async () => {
    const stage = await stageWith();
    await stage.start({ persistent: true });
    stage.speak();
    await stage.playlist();
    await until(() => stage.service.isLive('kitchen'));
    await stage.end();
    expect(stage.service.isLive('kitchen')).toBe(false);
    expect(stage.ended).toEqual(['kitchen']);
    const text = await readFile(join(stage.path, 'recordings', 'kitchen', 'main.m3u8'), 'utf8');
    expect(text.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
  });
});

withCompositor('move of a stream [needs node-av]', () => {
  test('leaves the files of its next node alone when both share a directory', async () => {
    const giver = await stageWith();
    await giver.start();
    giver.speak();
    await giver.playlist();
    giver.component.freeze(true);
    const taker = await takerOf(giver);
    await taker.start({}, giver.component.progress!());
    await giver.end();
    taker.speak();
    await until(async () => (await taker.playlist()).includes('muxed_header_main_part1_.mp4'));
    await until(() => taker.temporary.some((path) => readdirSync(path).includes('muxed_header_main_part1_.mp4')));
    expect(taker.temporary).toHaveLength(1);
    expect(taker.room.reports.filter((report) => report.do === 'crashed')).toEqual([]);
  });
});

withCompositor('move of a stream that nobody fills [needs node-av]', () => {
  test('goes on in black and silence, and does not end', async () => {
    const giver = await stageWith();
    await giver.start();
    giver.speak();
    await giver.playlist();
    giver.component.freeze(true);
    const taker = await takerOf(giver);
    await taker.start({}, giver.component.progress!());
    await until(async () => (await taker.playlist()).includes('muxed_header_main_part1_.mp4'));
    // No picture has been shown, so the backend waits for the first one.
    expect(taker.component.inspect()).toMatchObject({ state: 'starting' });
  });
});

withCompositor('compositor [needs node-av]', () => {
  test('gets tracks through taps, which close with their tracks', async () => {
    const stage = await stageWith();
    await stage.start();
    const track = (trackId: string) => ({
      origin: 'ann',
      originType: 'webrtc' as const,
      originMetadata: null,
      track: { trackId, kind: 'audio', codec: 'opus', metadata: null, encodings: [], disabledEncodings: [] } as const,
    });
    stage.component.receive([track('a'), track('b')]);
    expect([...stage.room.taps.keys()]).toEqual(['a', 'b']);
    stage.component.receive([track('b'), track('c')]);
    await Promise.resolve();
    expect([...stage.room.taps.keys()]).toEqual(['b', 'c']);
    await stage.component.close();
    expect([...stage.room.taps.keys()]).toEqual([]);
    stage.component.receive([track('d')]);
    expect([...stage.room.taps.keys()]).toEqual([]);
  });

  test('fails its component when it is killed, and leaves what was written intact', async () => {
    const stage = await stageWith();
    await stage.start({ persistent: true });
    stage.speak();
    await stage.playlist();
    process.kill(stage.component.pid!, 'SIGABRT');
    expect(await stage.room.until('crashed')).toMatchObject({ reason: expect.stringContaining('SIGABRT') });
    await stage.end();
    const text = await readFile(join(stage.path, 'recordings', 'kitchen', 'main.m3u8'), 'utf8');
    expect(text.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
    expect(stage.room.reports).toHaveLength(1);
  });

  test('ignores a signal meant for the server', async () => {
    const stage = await stageWith();
    await stage.start({ persistent: true });
    stage.speak();
    await stage.playlist();
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.kill(stage.component.pid!, signal);
    const before = await stage.playlist();
    await until(async () => (await stage.playlist()) !== before);
    expect(stage.room.reports).toEqual([]);
    await stage.end();
    expect(() => process.kill(stage.component.pid!, 0)).toThrow('ESRCH');
  });

  test('is killed when it hangs', async () => {
    const stage = await stageWith({ hangMs: 5_000 });
    await stage.start();
    process.kill(stage.component.pid!, 'SIGSTOP');
    expect(await stage.room.until('crashed')).toMatchObject({ reason: expect.stringContaining('5000 ms') });
  });
});

withCompositor('upload [needs node-av]', () => {
  test('stores every file with its content type when the room ends', async () => {
    const objects: string[] = [];
    const stage = await stageWith({ s3Endpoint: await store(200, objects) });
    await stage.start({ s3: credentials });
    expect(stage.held).toBe(1);
    stage.speak();
    await stage.playlist();
    await stage.end();
    expect(stage.notified).toEqual(['hlsUploaded']);
    expect(stage.held).toBe(0);
    expect(objects).toContain('/streams/kitchen/index.m3u8 application/vnd.apple.mpegurl');
    expect(objects).toContainEqual(
      expect.stringMatching(/^\/streams\/kitchen\/muxed_segment_0_main-\w+\.m4s video\/mp4$/),
    );
    expect(stage.temporary).toEqual([]);
  });

  test('reports a refusal, and the stream is removed all the same', async () => {
    const stage = await stageWith({ s3Endpoint: await store(403, []) });
    await stage.start({ s3: credentials });
    stage.speak();
    await stage.playlist();
    await stage.end();
    expect(stage.notified).toEqual(['hlsUploadCrashed']);
    expect(stage.temporary).toEqual([]);
  });
});

test('reports a recording as complete when its process was killed', async () => {
  const stage = await stageWith();
  const playlist = join(stage.path, 'recordings', 'kitchen', 'main.m3u8');
  await mkdir(dirname(playlist), { recursive: true });
  await writeFile(playlist, '#EXTM3U\n');
  await utimes(playlist, 1, 1);
  const stopTidying = stage.service.tidy();
  await until(() => stage.ended.length > 0);
  stopTidying();
  expect(stage.ended).toEqual(['kitchen']);
  expect(await readFile(playlist, 'utf8')).toBe('#EXTM3U\n#EXT-X-ENDLIST\n');
});

test('says that a stream has moved for as long as its room may not have arrived', async () => {
  const clock = new ManualClock();
  let passesOn = true;
  const stage = await stageWith({ nativeInstalled: () => true, clock, passesOn: () => passesOn });
  await stage.start();
  await stage.component.freeze(true);
  await stage.component.close(true);
  clock.advance(60_000);
  await expect(stage.file('main.m3u8')).rejects.toMatchObject({ code: 'MOVED' });
  passesOn = false;
  await expect(stage.file('main.m3u8')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('frees the place of a stream only once nothing is left in it', async () => {
  const stage = await stageWith({ nativeInstalled: () => true });
  await stage.start();
  await until(() => stage.temporary.length > 0);
  const place = stage.temporary[0]!;
  await Promise.all(Array.from({ length: 500 }, (_, i) => writeFile(join(place, `segment-${i}`), '')));

  stage.service.roomEnded('kitchen');
  await until(() => !stage.service.holds('kitchen'));
  expect(existsSync(place)).toBe(false);
  await stage.service.settled();
});

test('rejects the component clearly when the compositor is not installed', async () => {
  const missing = await stageWith({ nativeInstalled: () => false });
  expect(missing.service.kind.missingPackage?.()).toBe('node-av');
  const installed = await stageWith({ nativeInstalled: () => true });
  expect(installed.service.kind.missingPackage?.()).toBeUndefined();
});
