// A stream that is kept or uploaded, and whose room moves: all of its files go along.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import type { ComponentProgress } from '@bloom/rooms';
import { systemClock } from '@bloom/time';
import { until } from '@bloom/time/testing';
import { TestRoom } from '../testing/room.js';
import type { HlsComponent } from './hls-component.js';
import type { FetchStreamFile, HlsServiceOptions, TakenStream } from './hls-options.js';
import { HlsService } from './hls-service.js';
import { StreamNames } from './names.js';
import { growingPlaylistHead, type SegmentEntry, segmentLines } from './playlist.js';

const engineEntry = new URL('../../dist/hls/engine/engine-main.js', import.meta.url);
const { signal } = new AbortController();
const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', region: 'eu-central-1', bucket: 'streams' };
const missing = (name: string): Error => Object.assign(new Error(`File not found: ${name}`), { code: 'NOT_FOUND' });

// Each node starts a process, and the machine may be busy.
jest.setTimeout(30_000);

interface Source {
  fetch: FetchStreamFile;
  taken(report: TakenStream): void;
}

/** A node with ten segments of a stream, of which the last four are in memory. */
class FirstNode implements Source {
  readonly files = new Map<string, Buffer>();
  readonly told: string[] = [];
  readonly progress: ComponentProgress;

  constructor(track = 'main') {
    const names = new StreamNames(track);
    const about = { header: 0, begins: false, startedAtMs: 1_000 };
    const segments = Array.from({ length: 10 }, (_, sequence): SegmentEntry => {
      const name = names.segment(sequence);
      this.files.set(name, Buffer.from(`segment ${sequence}`));
      return { ...about, sequence, name, parts: [{ name: '', frames: 60, independent: true, bytes: 9 }] };
    });
    const lines = segments.map((segment, i) => segmentLines(segment, segments[i - 1] ?? null, (n) => names.init(n)));
    this.files.set(names.init(0), Buffer.from('header'));
    this.files.set(names.media, Buffer.from(growingPlaylistHead(segments[0]!) + lines.join('')));
    const newest = segments.slice(6).map(() => ({ ...about, parts: [{ frames: 60, independent: true, bytes: 9 }] }));
    this.progress = { stream: { track, codecs: 'avc1.42c01f,mp4a.40.2', next: 10, segments: newest }, playable: true };
  }

  fetch: FetchStreamFile = async ({ fileName }) => {
    const found = this.files.get(fileName);
    if (found === undefined) throw missing(fileName);
    return found;
  };

  taken({ how }: TakenStream): void {
    this.told.push(how);
  }
}

class Node implements Source {
  readonly begun: string[] = [];
  readonly ended: string[] = [];
  readonly notified: string[] = [];
  readonly told: string[] = [];
  readonly room = new TestRoom(systemClock);
  readonly service: HlsService;
  component!: HlsComponent;

  constructor(
    readonly path: string,
    source: Source,
    options: Partial<HlsServiceOptions> = {},
  ) {
    this.service = new HlsService({
      resourcesPath: path,
      s3Endpoint: null,
      beginRecording: async (id) => {
        this.begun.push(id);
        const there = join(path, 'recordings', id);
        if (existsSync(there)) await rename(there, `${there}-aside`);
      },
      endRecording: (id) => void this.ended.push(id),
      notify: ({ type }) => void this.notified.push(type),
      hold: () => () => undefined,
      fetch: source.fetch,
      taken: async (_node, report) => source.taken(report),
      takerOf: () => 'next',
      nativeInstalled: () => true,
      log: silentLog,
      processes: new Processes({ log: silentLog }),
      engineEntry,
      ...options,
    });
  }

  fetch: FetchStreamFile = async ({ fileName, stored = false }) => {
    const located = await this.service.locate({ roomId: 'kitchen', fileName, waitFor: undefined, stored, signal });
    return 'bytes' in located ? located.bytes : readFile(join(located.directory, fileName));
  };

  taken(report: TakenStream): void {
    this.told.push(report.how);
    this.service.filesTaken(report, 'next');
  }

  async start(options: Record<string, unknown>, progress: ComponentProgress): Promise<void> {
    const room = { roomId: 'kitchen', videoCodec: 'h264' } as const;
    const prepared = await this.service.kind.prepare(options, room, { node: 'former', progress });
    this.component = prepared.start({ ...this.room.host, resumed: { tracks: [], progress } }) as HlsComponent;
  }

  /** Freezes the stream, and gives it to the other node. */
  async moveTo(other: Node, options: Record<string, unknown>): Promise<void> {
    await this.component.freeze(true);
    await other.start(options, JSON.parse(JSON.stringify(this.component.progress())) as ComponentProgress);
    await this.component.close(true);
  }

  async end(): Promise<void> {
    await this.component.close();
    this.service.roomEnded('kitchen');
    await this.service.settled();
  }

  get recording(): string {
    return join(this.path, 'recordings', 'kitchen');
  }

  /** What the recording lists, all of which must be there. */
  async listed(): Promise<string[]> {
    const text = await readFile(join(this.recording, 'main.m3u8'), 'utf8');
    const names = text.match(/^muxed_segment_.+$|muxed_header[^"]+/gm) ?? [];
    const files = await readdir(this.recording);
    expect(names.filter((name) => !files.includes(name))).toEqual([]);

    return names.filter((name) => name.startsWith('muxed_segment'));
  }
}

const nodes: Node[] = [];
const servers: Server[] = [];
let first: FirstNode;

async function nodeFrom(source: Source, options: Partial<HlsServiceOptions> = {}, path?: string): Promise<Node> {
  const node = new Node(path ?? (await mkdtemp(join(tmpdir(), 'bloom-kept-'))), source, options);
  nodes.push(node);
  return node;
}

/** Starts a store that notes the names of what is uploaded. */
async function store(objects: string[]): Promise<string> {
  const server = createServer((request, response) => {
    if (request.method === 'PUT') objects.push(request.url!.split('?')[0]!.split('/').at(-1)!);
    request.resume().on('end', () => response.writeHead(200, { etag: '"x"' }).end());
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeEach(() => {
  first = new FirstNode();
});

afterEach(async () => {
  for (const node of nodes.splice(0)) {
    await node.component?.close();
    await rm(node.path, { recursive: true, force: true });
  }
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const segmentOf = (sequence: number): string => `muxed_segment_${sequence}_main.m4s`;
const tenSegments = Array.from({ length: 10 }, (_, n) => segmentOf(n));

describe('a kept stream whose room moves', () => {
  test('is one recording where its room ends, and nothing is left elsewhere', async () => {
    const a = await nodeFrom(first);
    await a.start({ persistent: true }, first.progress);
    await until(() => first.told.length > 0);
    expect(first.told).toEqual(['copied']);
    const b = await nodeFrom(a);
    await a.moveTo(b, { persistent: true });
    expect(a.service.isLive('kitchen')).toBe(true);
    await until(() => a.told.length > 0);
    await until(() => !a.service.holds('kitchen'));
    expect([a.told, a.ended, existsSync(a.recording)]).toEqual([['copied'], [], false]);
    await b.end();
    const listed = await b.listed();
    expect(listed.slice(0, 10)).toEqual(tenSegments);
    expect(await readFile(join(b.recording, segmentOf(0)), 'utf8')).toBe('segment 0');
    expect(await readFile(join(b.recording, 'main.m3u8'), 'utf8')).toMatch(/#EXT-X-ENDLIST\n$/);
    expect([b.begun, b.ended]).toEqual([['kitchen'], ['kitchen']]);
  });

  test('goes on in the same directory if both nodes use one disk', async () => {
    const a = await nodeFrom(first);
    await a.start({ persistent: true }, first.progress);
    await until(() => first.told.length > 0);
    const b = await nodeFrom(a, {}, a.path);
    await a.moveTo(b, { persistent: true });
    await until(() => !a.service.holds('kitchen'));
    expect([a.told, a.ended, b.begun]).toEqual([['shared'], [], []]);
    await b.end();
    expect((await b.listed()).slice(0, 10)).toEqual(tenSegments);
    expect(await readdir(join(a.path, 'recordings'))).toEqual(['kitchen']);
  });

  test('stays a recording of its own as far as the other node has not got it', async () => {
    const a = await nodeFrom(first);
    await a.start({ persistent: true }, first.progress);
    await until(() => first.told.length > 0);
    let isBroken = false;
    const b = await nodeFrom({
      fetch: async (file) => {
        if (isBroken) throw missing(file.fileName);
        return a.fetch(file);
      },
      taken: (report) => a.taken(report),
    });
    await a.component.freeze(true);
    const progress = a.component.progress();
    const { stream } = progress;
    // Only the newest segments come with the move.
    const newest = { ...progress, stream: { ...stream!, segments: stream!.segments.slice(-2) } };
    await b.start({ persistent: true }, newest);
    isBroken = true;
    await a.component.close(true);
    await until(() => a.told.length > 0);
    await until(() => !a.service.holds('kitchen'));
    expect([a.told, a.ended]).toEqual([['incomplete'], ['kitchen']]);
    expect((await a.listed()).slice(0, 10)).toEqual(tenSegments);
    expect(await readFile(join(a.recording, 'main.m3u8'), 'utf8')).toMatch(/#EXT-X-ENDLIST\n$/);
    await b.end();
    expect(await b.listed()).not.toContain(segmentOf(0));
  });

  test('stays as far as the node that has taken its room has not got it, whatever others say', async () => {
    const a = await nodeFrom(first);
    await a.start({ persistent: true }, first.progress);
    await until(() => first.told.length > 0);
    await a.component.freeze(true);
    await a.component.close(true);
    const about = { roomId: 'kitchen', track: 'main' };
    a.service.filesTaken({ ...about, how: 'copied' }, 'another');
    a.service.filesTaken({ ...about, how: 'incomplete' }, 'next');
    await until(() => !a.service.holds('kitchen'));
    expect((await a.listed()).slice(0, 10)).toEqual(tenSegments);
  });

  test('refuses a room whose list of files is malformed', async () => {
    first.files.set('main.m3u8', Buffer.from('#EXTM3U\n#EXTINF:2.00000,\n../../x\n'));
    const a = await nodeFrom(first);
    await expect(a.start({ persistent: true }, first.progress)).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'its stream cannot be fetched: its playlist has an unexpected segment ../../x',
    });
    expect(existsSync(a.recording)).toBe(false);
  });
});

describe('an uploaded stream whose room moves', () => {
  test('is uploaded once and as a whole, by the node where its room ends', async () => {
    const [atA, atB]: [string[], string[]] = [[], []];
    first = new FirstNode('main-mf3k2a');
    const a = await nodeFrom(first, { s3Endpoint: await store(atA) });
    await a.start({ s3: credentials }, first.progress);
    await until(() => first.told.length > 0);
    const b = await nodeFrom(a, { s3Endpoint: await store(atB) });
    await a.moveTo(b, { s3: credentials });
    await until(() => !a.service.holds('kitchen'));
    expect(await readdir(join(a.path, 'temporary_hls'))).toEqual([]);
    await b.end();
    expect([atA, a.notified, b.notified]).toEqual([[], [], ['hlsUploaded']]);
    const names = new StreamNames('main-mf3k2a');
    expect(atB).toEqual(
      expect.arrayContaining([
        'index.m3u8',
        names.media,
        names.init(0),
        ...tenSegments.map((_, n) => names.segment(n)),
      ]),
    );
    expect(await readdir(join(b.path, 'temporary_hls'))).toEqual([]);
  });

  test('is uploaded by its former node if its room is lost on the way', async () => {
    const objects: string[] = [];
    const a = await nodeFrom(first, { s3Endpoint: await store(objects), passesOn: () => true });
    await a.start({ s3: credentials, persistent: true }, first.progress);
    await until(() => first.told.length > 0);
    await a.component.freeze(true);
    await a.component.close(true);
    expect(a.service.isLive('kitchen')).toBe(true);
    a.service.roomEnded('kitchen');
    await a.service.settled();
    expect([a.notified, a.ended]).toEqual([['hlsUploaded'], ['kitchen']]);
    expect(objects).toEqual(expect.arrayContaining(tenSegments));
  });

  test('is uploaded where its room ends while it is about to move', async () => {
    const objects: string[] = [];
    const a = await nodeFrom(first, { s3Endpoint: await store(objects) });
    await a.start({ s3: credentials }, first.progress);
    await until(() => first.told.length > 0);
    await a.component.freeze(true);
    await a.end();
    expect([a.notified, await readdir(join(a.path, 'temporary_hls'))]).toEqual([['hlsUploaded'], []]);
    expect(objects).toEqual(expect.arrayContaining(tenSegments));
  });

  test('is uploaded by the node of its component, if that was removed before the room moved', async () => {
    const objects: string[] = [];
    const a = await nodeFrom(first, { s3Endpoint: await store(objects) });
    await a.start({ s3: credentials }, first.progress);
    await until(() => first.told.length > 0);
    await a.component.close();
    a.service.roomMovedAway('kitchen');
    await a.service.settled();
    expect([a.notified, await readdir(join(a.path, 'temporary_hls'))]).toEqual([['hlsUploaded'], []]);
    expect(objects).toEqual(expect.arrayContaining(tenSegments));
    expect(a.service.holds('kitchen')).toBe(false);
  });

  test('is there for its next node until that one has all files, while its former node ends', async () => {
    const a = await nodeFrom(first);
    await a.start({ s3: credentials }, first.progress);
    await until(() => first.told.length > 0);
    let mayRead: () => void = () => undefined;
    const reads = new Promise<void>((resolve) => (mayRead = resolve));
    const b = await nodeFrom({
      fetch: async (file) => {
        if (file.fileName === segmentOf(0)) await reads;
        return a.fetch(file);
      },
      taken: (report) => a.taken(report),
    });
    await a.moveTo(b, { s3: credentials });
    let isOver = false;
    const copied = a.service.copied().then(() => (isOver = true));
    await until(() => existsSync(join(b.path, 'temporary_hls')));
    expect(isOver).toBe(false);
    mayRead();
    await copied;
    expect(a.told).toEqual(['copied']);
  });
});
