import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { RoomError } from '@bloom/rooms';
import { ManualClock, until } from '@bloom/time/testing';
import { ClusterRecordings } from './cluster-recordings.js';
import { ClusterStreams } from './cluster-streams.js';
import { CHUNK_BYTES, FILES_ACTOR, type FilesProtocol, HEAD_BYTES } from './file-messages.js';
import { type FilesPort, RemoteFiles } from './remote-files.js';
import type { ServedFile } from './served-file.js';
import type { StreamRequest } from './stores.js';
import { bytesOf, TestNode } from './testing/test-node.js';

/** Node `a` of the cluster `a`, `b`, `c`, as seen by its clients. */
class Cluster {
  readonly nodes = new Map(['a', 'b', 'c'].map((name) => [name, new TestNode(name)]));
  readonly members = new Set(['b', 'c']);
  readonly calls: string[] = [];
  readonly clock = new ManualClock();
  owner: string | RoomError = 'b';
  readonly port: FilesPort = {
    members: () => [...this.members],
    releaseOf: () => null,
    call: (node, message, timeoutMs) => {
      this.calls.push(`${node} ${message.type}`);
      if (!this.members.has(node)) return Promise.reject(new Error(`no connection to ${node}`));
      const { system, frozen } = this.node(node);
      if (frozen) return Promise.reject(new Error(`no answer within ${timeoutMs} ms`));

      // As the border of the actors adds it.
      const sent = message.type === 'streamTaken' ? { ...message, from: 'a' } : message;
      return system.call<FilesProtocol, typeof message.type>(FILES_ACTOR, sent as never, timeoutMs) as never;
    },
    cast: (node, message) => {
      this.calls.push(`${node} ${message.type}`);
      void this.node(node).system.cast<FilesProtocol>(FILES_ACTOR, message);
    },
  };
  readonly remote = new RemoteFiles(this.port);
  readonly streams = new ClusterStreams({
    self: 'a',
    local: this.node('a').stream,
    remote: this.remote,
    ownerOf: async () => {
      if (this.owner instanceof RoomError) throw this.owner;
      return this.owner;
    },
    clock: this.clock,
  });
  recordings!: ClusterRecordings;

  node(name: string): TestNode {
    return this.nodes.get(name)!;
  }

  async open(): Promise<this> {
    for (const node of this.nodes.values()) await node.open();
    this.recordings = new ClusterRecordings({
      local: this.node('a').recordings,
      remote: this.remote,
      ownerOf: async () => {
        if (this.owner instanceof RoomError) throw this.owner;
        return this.owner;
      },
      lostNodes: () => ['z'],
      self: 'a',
      log: silentLog,
    });
    return this;
  }

  /** Sends a request as a client of `a`; `leave` disconnects the client. */
  ask(fileName: string, blocking?: StreamRequest['blocking']): { file: Promise<ServedFile>; leave: () => void } {
    const gone = new AbortController();
    const file = this.streams.open({ roomId: 'room', fileName, blocking, signal: gone.signal });
    file.catch(() => undefined);
    return { file, leave: () => gone.abort() };
  }

  async idle(): Promise<void> {
    for (const { system } of this.nodes.values()) await system.idle();
  }
}

const { signal } = new AbortController();

async function contentOf(file: ServedFile, range = { start: 0, end: file.size - 1 }): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of file.stream(range)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

let cluster: Cluster;

beforeEach(async () => {
  cluster = await new Cluster().open();
});
afterEach(async () => {
  for (const node of cluster.nodes.values()) await node.close();
});

describe('the stream of a room on another node', () => {
  test('reads a stream from its node: small files at once, large ones in pieces, and ranges of either', async () => {
    const { stream } = cluster.node('b');
    const large = bytesOf(5 * 1024 * 1024 + 17);
    stream.files.set('index.m3u8', Buffer.from('#EXTM3U\n')).set('big.m4s', large).set('empty.m4s', Buffer.alloc(0));

    expect((await contentOf(await cluster.ask('index.m3u8').file)).toString()).toBe('#EXTM3U\n');
    expect((await cluster.ask('empty.m4s').file).size).toBe(0);
    expect(cluster.calls).toEqual(['b open', 'b open']);

    const file = await cluster.ask('big.m4s').file;
    expect(file.size).toBe(large.length);
    expect((await contentOf(file)).equals(large)).toBe(true);
    const middle = { start: HEAD_BYTES - 5, end: HEAD_BYTES + CHUNK_BYTES + 5 };
    const again = await cluster.ask('big.m4s').file;
    expect((await contentOf(again, middle)).equals(large.subarray(middle.start, middle.end + 1))).toBe(true);
    await cluster.idle();
    expect(stream.closed).toEqual(['index.m3u8', 'empty.m4s', 'big.m4s', 'big.m4s']);
  });

  test('is read from the disk of its node by the next one, which then says that it has it', async () => {
    const { stream } = cluster.node('b');
    stream.files.set('main.m3u8', Buffer.from('#EXTM3U\n')).set('part', Buffer.from('x'));
    const file = { kind: 'stream', roomId: 'room', fileName: 'main.m3u8' } as const;
    await cluster.remote.fetch('b', file, { maxBytes: 10, signal });
    expect(stream.stored).toEqual([]);
    const bytes = await cluster.remote.fetch('b', { ...file, stored: true }, { maxBytes: 10, signal });
    expect([bytes.toString(), stream.stored]).toEqual(['#EXTM3U\n', ['main.m3u8']]);
    const report = { roomId: 'room', track: 'main', how: 'copied' } as const;
    await cluster.remote.streamTaken('b', report);
    expect(stream.reports).toEqual([{ ...report, node: 'a' }]);
    cluster.members.delete('b');
    await expect(cluster.remote.streamTaken('b', report)).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  });

  test.each(['a', 'b'])(
    'is read from its next node as soon as that is known, if it has just left node %s',
    async (old) => {
      Object.assign(cluster.node(old).stream, { hasLeft: true });
      cluster.node('c').stream.files.set('main.m3u8', Buffer.from('after the move'));
      cluster.owner = old;
      const asked = cluster.ask('main.m3u8', { segment: 1, part: 0 });
      await until(() => cluster.node(old).stream.asked.length > 0);
      cluster.node(old).stream.release('main.m3u8');
      const turn = (): Promise<void> => cluster.idle();
      await until(() => cluster.clock.pending > 0);
      cluster.owner = 'c';
      await cluster.clock.advanceAsync(50, turn);
      await until(() => cluster.node('c').stream.asked.length > 0);
      cluster.node('c').stream.release('main.m3u8');
      expect((await contentOf(await asked.file)).toString()).toBe('after the move');
    },
  );

  test('is unreachable if its next node is not known within 3 s, and not looked for once the viewer has gone', async () => {
    Object.assign(cluster.node('b').stream, { hasLeft: true });
    const [asked, left] = [cluster.ask('main.m3u8'), cluster.ask('main.m3u8')];
    await until(() => cluster.clock.pending > 1);
    left.leave();
    await expect(left.file).rejects.toThrow();
    let isOver = false;
    void asked.file.catch(() => (isOver = true));
    await until(() => {
      if (!isOver && cluster.clock.pending > 0) cluster.clock.advance(50);
      return isOver;
    });
    await expect(asked.file).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
    expect(cluster.clock.now()).toBeGreaterThanOrEqual(3_000);
  });

  test('requests the next piece of a large file only when the client accepts it', async () => {
    cluster.node('b').stream.files.set('big.m4s', bytesOf(6 * 1024 * 1024));
    const file = await cluster.ask('big.m4s').file;
    const reader = file.stream({ start: 0, end: file.size - 1 });
    reader.read(0);
    await cluster.idle();
    const reads = cluster.calls.filter((call) => call === 'b read').length;
    expect(reads).toBeLessThan(4);
    reader.destroy();
    await new Promise((resolve) => reader.once('close', resolve));
    await cluster.idle();
    expect(cluster.node('b').stream.closed).toEqual(['big.m4s']);
  });

  test('requests a file once for many waiting viewers, and again for the next request', async () => {
    const { stream } = cluster.node('b');
    stream.files.set('main.m3u8', Buffer.from('the newest'));
    const viewers = Array.from({ length: 50 }, () => cluster.ask('main.m3u8', { segment: 3, part: 1 }));
    await cluster.idle();
    expect(stream.asked).toEqual(['main.m3u8']);
    stream.release('main.m3u8');
    const texts = await Promise.all(viewers.map(async ({ file }) => (await contentOf(await file)).toString()));
    expect(new Set(texts)).toEqual(new Set(['the newest']));
    const next = cluster.ask('main.m3u8', { segment: 3, part: 2 });
    await cluster.idle();
    expect(stream.asked).toHaveLength(2);
    stream.release('main.m3u8');
    await next.file;
  });

  test('keeps immutable files briefly, and playlists not at all', async () => {
    const { stream } = cluster.node('b');
    stream.files.set('main.m3u8', Buffer.from('list')).set('s_0_part.m4s', Buffer.from('part'));
    stream.files.set('s.m4s', Buffer.from('segment'));
    for (const name of ['main.m3u8', 's_0_part.m4s', 's.m4s']) {
      await cluster.ask(name).file;
      await cluster.ask(name).file;
    }
    expect(stream.asked).toEqual(['main.m3u8', 'main.m3u8', 's_0_part.m4s', 's.m4s']);
    cluster.clock.advance(1_500);
    await cluster.ask('s_0_part.m4s').file;
    expect(stream.asked).toHaveLength(5);
  });

  test('ends the request on the other node when the last viewer has left', async () => {
    const { stream } = cluster.node('b');
    const [first, second] = [
      cluster.ask('main.m3u8', { segment: 1, part: 0 }),
      cluster.ask('main.m3u8', { segment: 1, part: 0 }),
    ];
    await cluster.idle();
    first.leave();
    await cluster.idle();
    expect(stream.aborted).toEqual([]);
    second.leave();
    await cluster.idle();
    expect(stream.aborted).toEqual(['main.m3u8']);
    await expect(second.file).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('does not wait behind other requests', async () => {
    const { stream } = cluster.node('b');
    stream.files.set('main.m3u8', Buffer.from('list')).set('s.m4s', bytesOf(CHUNK_BYTES * 3));
    const waiting = Array.from({ length: 100 }, (_, i) => cluster.ask('main.m3u8', { segment: i, part: 0 }));
    await cluster.idle();
    expect((await contentOf(await cluster.ask('s.m4s').file)).length).toBe(CHUNK_BYTES * 3);
    for (const { leave } of waiting) leave();
    await cluster.idle();
    expect(stream.aborted).toHaveLength(100);
  });

  test('passes on the refusals of its owner, and has no files for an unknown room', async () => {
    await expect(cluster.ask('none.m4s').file).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'File not found: none.m4s',
    });
    cluster.owner = new RoomError('ROOM_NOT_FOUND', 'Room room does not exist');
    await expect(cluster.ask('x.m4s').file).rejects.toMatchObject({ message: 'File not found: x.m4s' });
    cluster.owner = new RoomError('OWNER_UNREACHABLE', 'Room room is on b, which is currently unreachable');
    await expect(cluster.ask('x.m4s').file).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  });

  test('breaks off with an owner that stops answering, and names it', async () => {
    cluster.node('b').stream.files.set('big.m4s', bytesOf(6 * 1024 * 1024));
    const file = await cluster.ask('big.m4s').file;
    cluster.node('b').frozen = true;
    await expect(contentOf(file)).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
    await expect(cluster.ask('big.m4s').file).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'Room room is on b, which is currently unreachable',
    });
  });

  test('serves a stream from this node if the room is here', async () => {
    cluster.owner = 'a';
    cluster.node('a').stream.files.set('index.m3u8', Buffer.from('mine'));
    expect((await contentOf(await cluster.ask('index.m3u8').file)).toString()).toBe('mine');
    expect(cluster.calls).toEqual([]);
  });
});

describe('the recordings of a cluster', () => {
  const fetch = async (id: string, name: string): Promise<string> =>
    (await contentOf(await cluster.recordings.open(id, name, signal))).toString();

  test('lists those of every node, each id once, and the nodes that did not answer', async () => {
    await cluster.node('a').record('one', 'index.m3u8', 'x');
    await cluster.node('b').record('one', 'index.m3u8', 'x');
    await cluster.node('b').record('two', 'index.m3u8', 'x');
    cluster.node('c').frozen = true;
    const { ids, unreachable } = await cluster.recordings.list('cluster');
    expect(ids.toSorted()).toEqual(['one', 'two']);
    expect(unreachable).toEqual(['c', 'z']);
    expect(await cluster.recordings.list('local')).toEqual({ ids: ['one'], unreachable: [] });
  });

  test('serves a recording from any node, and the newest one if several nodes have its id', async () => {
    await cluster.node('a').finish('one', '2026-01-01T10:00:00.000Z', 'day 1');
    await cluster.node('b').finish('one', '2026-01-02T10:00:00.000Z', 'day 2');
    await cluster.node('c').record('film', 'main.m4s', bytesOf(HEAD_BYTES * 2));
    expect(await fetch('one', 'main.m3u8')).toContain('day 2');
    const film = await cluster.recordings.open('film', 'main.m4s', signal);
    expect((await contentOf(film)).equals(bytesOf(HEAD_BYTES * 2))).toBe(true);
  });

  test('removes a recording from every node', async () => {
    for (const name of ['a', 'b', 'c']) await cluster.node(name).record('one', 'index.m3u8', name);
    await cluster.recordings.remove('one');
    for (const name of ['a', 'b', 'c']) expect(await cluster.node(name).ids()).toEqual([]);
    await expect(fetch('one', 'index.m3u8')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'Recording one not found',
    });
    await expect(cluster.recordings.remove('one')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('does not report a removal while a node that may have the recording does not answer', async () => {
    await cluster.node('a').record('one', 'index.m3u8', 'x');
    await cluster.node('c').record('one', 'index.m3u8', 'x');
    cluster.node('c').frozen = true;
    await expect(cluster.recordings.remove('one')).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'Recording one may be on c, which is currently unreachable',
    });
    cluster.node('c').frozen = false;
    await cluster.recordings.remove('one');
    expect(await cluster.node('c').ids()).toEqual([]);
  });

  test('reports an unknown recording only as perhaps being on a node that does not answer', async () => {
    cluster.owner = new RoomError('ROOM_NOT_FOUND', 'Room xx does not exist');
    cluster.node('c').frozen = true;
    const maybe = { code: 'OWNER_UNREACHABLE', message: 'Recording xx may be on c, which is currently unreachable' };
    await expect(fetch('xx', 'index.m3u8')).rejects.toMatchObject(maybe);
    await expect(cluster.recordings.remove('xx')).rejects.toMatchObject(maybe);
    cluster.node('c').frozen = false;
    await expect(fetch('xx', 'index.m3u8')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('sets a recording aside on every node when a new one with its id begins', async () => {
    for (const name of ['a', 'b']) await cluster.node(name).finish('one', '2026-01-01T10:00:00.250Z', name);
    cluster.node('c').live.add('one');
    await cluster.node('c').finish('one', '2026-01-03T10:00:00.000Z');
    await cluster.node('a').recordings.begin('one');
    expect(await cluster.node('a').ids()).toEqual(['one-20260101T100000Z']);
    while ((await cluster.node('b').ids()).includes('one')) await cluster.idle();
    expect(await cluster.node('b').ids()).toEqual(['one-20260101T100000Z']);
    expect(await cluster.node('c').ids()).toEqual(['one']);
    expect(await fetch('one-20260101T100000Z', 'main.m3u8')).toContain('a');
  });

  test('sets a recording aside when a node with a newer one returns after a network split', async () => {
    await cluster.node('a').finish('older', '2026-01-01T10:00:00.000Z');
    await cluster.node('a').finish('newer', '2026-01-03T10:00:00.000Z');
    await cluster.node('a').finish('mine', '2026-01-01T10:00:00.000Z');
    for (const id of ['older', 'newer']) await cluster.node('b').finish(id, '2026-01-02T10:00:00.000Z');
    cluster.node('b').live.add('older');
    await cluster.recordings.compareWith('b');
    expect(await cluster.node('a').ids()).toEqual(['mine', 'newer', 'older-20260101T100000Z']);
  });

  test('sets a recording aside when it is completed after a kill and another node has a newer one', async () => {
    const playlist = '#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T10:00:00.000Z\nday 1\n';
    await cluster.node('a').record('one', 'main.m3u8', playlist);
    await cluster.node('b').finish('one', '2026-01-02T10:00:00.000Z', 'day 2');
    // It may still be growing, written by another process.
    await cluster.recordings.compareWith('b');
    expect(await cluster.node('a').ids()).toEqual(['one']);

    await cluster.node('a').record('one', 'main.m3u8', `${playlist}#EXT-X-ENDLIST\n`);
    cluster.node('a').recordings.end('one');
    while ((await cluster.node('a').ids()).includes('one')) await cluster.idle();
    await cluster.recordings.remove('one');
    expect(await fetch('one-20260101T100000Z', 'main.m3u8')).toContain('day 1');
  });

  test('keeps the id of a recording that ends if there is no newer one', async () => {
    cluster.node('b').live.add('one');
    await cluster.node('b').finish('one', '2026-01-01T10:00:00.000Z');
    await cluster.node('a').finish('one', '2026-01-02T10:00:00.000Z');
    cluster.node('a').recordings.end('one');
    await until(() => cluster.calls.length === 2);
    await cluster.idle();
    expect(await cluster.node('a').ids()).toEqual(['one']);
  });

  test('looks a recording up again after it has moved, and requests it directly while it stays', async () => {
    await cluster.node('b').record('one', 'x', '1');
    expect(await fetch('one', 'x')).toBe('1');
    cluster.calls.length = 0;
    expect(await fetch('one', 'x')).toBe('1');
    expect(cluster.calls).toEqual(['b open']);
    await expect(fetch('one', 'y')).rejects.toMatchObject({ message: 'File not found: y' });
    await cluster.node('b').recordings.remove('one');
    await cluster.node('c').record('one', 'x', '2');
    expect(await fetch('one', 'x')).toBe('2');
  });

  test('serves no live recording, and rejects bad names on every node', async () => {
    await cluster.node('b').record('one', 'x', '1');
    cluster.node('b').live.add('one');
    await expect(fetch('one', 'x')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(fetch('../one', 'x')).rejects.toMatchObject({ code: 'INVALID_NAME' });
    await expect(fetch('one', '../x')).rejects.toMatchObject({ message: 'Invalid filename, got: ../x' });
    await expect(cluster.recordings.remove('.')).rejects.toMatchObject({ code: 'INVALID_NAME' });
  });

  test('never reports a recording on an unreachable node as missing', async () => {
    await cluster.node('b').record('one', 'x', '1');
    await fetch('one', 'x');
    cluster.members.delete('b');
    await expect(fetch('one', 'x')).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'Recording one is on b, which is currently unreachable',
    });
    await expect(cluster.recordings.remove('one')).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
    cluster.owner = new RoomError('OWNER_UNREACHABLE', 'Room lost is on b, which is currently unreachable');
    await expect(fetch('lost', 'x')).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
    cluster.owner = new RoomError('ROOM_NOT_FOUND', 'Room other does not exist');
    await expect(fetch('other', 'x')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    cluster.node('c').frozen = true;
    await expect(fetch('other', 'x')).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  });
});
