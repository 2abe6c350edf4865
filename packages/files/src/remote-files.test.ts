import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, expect, test } from '@jest/globals';
import { openActorSystem, type Behaviour } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { until } from '@bloom/time/testing';
import { CHUNK_BYTES, HEAD_BYTES } from './file-messages.js';
import { type FilesPort, RemoteFiles } from './remote-files.js';

test.each(['before the first piece', 'after it'] as const)(
  'closes a file once when its reader leaves %s',
  async (when) => {
    const casts: string[] = [];
    const port = {
      members: () => ['b'],
      call: async (_node: string, { type }: { type: string }) => ({
        ok: true,
        value: type === 'read' ? Buffer.alloc(10) : { size: 10 * HEAD_BYTES, head: Buffer.alloc(HEAD_BYTES) },
      }),
      cast: (_node: string, { type }: { type: string }) => void casts.push(type),
    } as unknown as FilesPort;
    const file = await new RemoteFiles(port).open(
      'b',
      { kind: 'recording', id: 'show', fileName: 'main.m4s' },
      new AbortController().signal,
    );
    const client = new PassThrough();
    if (when === 'after it') client.once('data', () => client.destroy());
    else client.destroy();
    await pipeline(file.stream({ start: 0, end: file.size - 1 }), client).catch(() => undefined);
    await until(() => casts.length > 0);
    await file.close();
    expect(casts).toEqual(['close']);
  },
);

test('never fills the link when many recordings are opened at once, and skips clients that have left', async () => {
  const answers: (() => void)[] = [];
  const port = {
    members: () => ['b'],
    call: () =>
      new Promise((resolve) => {
        answers.push(() => resolve({ ok: true, value: { size: 10 * HEAD_BYTES, head: Buffer.alloc(HEAD_BYTES) } }));
      }),
    cast: () => undefined,
  } as unknown as FilesPort;
  const files = new RemoteFiles(port);
  const clients = Array.from({ length: 200 }, () => new AbortController());
  const opened = clients.map(({ signal }) =>
    files.open('b', { kind: 'recording', id: 'show', fileName: 'x.m4s' }, signal),
  );
  const settled = Promise.allSettled(opened);
  await until(() => answers.length > 0);
  for (const client of clients.slice(100)) client.abort();
  let asked = 0;
  while (asked < 100) {
    await until(() => answers.length > 0);
    await new Promise(setImmediate);
    expect(answers.length * HEAD_BYTES).toBeLessThanOrEqual(2 * 1024 * 1024);
    asked += answers.length;
    for (const answer of answers.splice(0)) answer();
  }
  const outcomes = (await settled).map(({ status }) => status);
  expect(outcomes).toEqual(Array.from({ length: 200 }, (_, i) => (i < 100 ? 'fulfilled' : 'rejected')));
  expect(asked).toBe(100);
});

test('names the release of an owner that does not know the request, instead of calling it unreachable', async () => {
  const system = openActorSystem({ log: silentLog });
  const older: Behaviour<Record<string, never>, null> = { kind: 'files-node', init: () => null, handlers: {} };
  const ref = system.spawn(older);
  const port = {
    releaseOf: () => '0.2.0',
    call: (_node: string, message: { type: never }, timeoutMs: number) => system.call(ref, message as never, timeoutMs),
    cast: () => undefined,
  } as unknown as FilesPort;
  const opening = new RemoteFiles(port).open(
    'b',
    { kind: 'recording', id: 'show', fileName: 'main.m4s' },
    new AbortController().signal,
  );
  await expect(opening).rejects.toMatchObject({
    code: 'OWNER_UNREACHABLE',
    message: expect.stringContaining('is on b of release 0.2.0, which does not know this request'),
  });
  await system.close();
});

describe('a whole file of another node', () => {
  const SEGMENT = { kind: 'stream', roomId: 'show', fileName: 'segment.m4s' } as const;
  const { signal } = new AbortController();

  /** A node that opens a file of this size, and answers reads with `read`. */
  function nodeWith(size: number, read: (start: number, length: number) => Promise<Buffer>) {
    const [starts, casts]: [number[], string[]] = [[], []];
    const port = {
      members: () => ['b'],
      call: async (_node: string, message: { type: string; start: number; length: number }) => {
        if (message.type === 'open')
          return { ok: true, value: { size, head: Buffer.alloc(Math.min(size, HEAD_BYTES)) } };
        starts.push(message.start);
        return { ok: true, value: await read(message.start, message.length) };
      },
      cast: (_node: string, { type }: { type: string }) => void casts.push(type),
    } as unknown as FilesPort;

    return { files: new RemoteFiles(port), starts, casts };
  }

  test('is read in a few pieces at once, and put together in order', async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    const { files, starts, casts } = nodeWith(9 * CHUNK_BYTES + 5, (start, length) => {
      most = Math.max(most, waiting.length + 1);
      return new Promise((done) => waiting.push(() => done(Buffer.alloc(length, start / CHUNK_BYTES))));
    });
    const fetched = files.fetch('b', SEGMENT, { maxBytes: 10 * CHUNK_BYTES, signal });
    await until(async () => {
      // The last one first.
      for (const answer of waiting.splice(0).toReversed()) answer();
      return starts.length === 9 && waiting.length === 0;
    });
    const bytes = await fetched;
    expect(most).toBe(4);
    expect(bytes).toHaveLength(9 * CHUNK_BYTES + 5);
    expect([0, 1, 5, 9].map((n) => bytes[n * CHUNK_BYTES + 4])).toEqual([0, 1, 5, 9]);
    expect(casts).toEqual(['close']);
  });

  test('is refused without a read if it is huge', async () => {
    const { files, starts, casts } = nodeWith(Number.MAX_SAFE_INTEGER, async (_start, length) => Buffer.alloc(length));
    await expect(files.fetch('b', SEGMENT, { maxBytes: 1_000, signal })).rejects.toMatchObject({
      code: 'INVALID_NAME',
      message: `segment.m4s has ${Number.MAX_SAFE_INTEGER} bytes, more than 1000`,
    });
    expect([starts, casts]).toEqual([[], ['close']]);
  });

  test('has no more bytes than announced if the pieces are endless', async () => {
    const { files } = nodeWith(2 * CHUNK_BYTES, async (_start, length) => Buffer.alloc(10 * length, 7));
    expect(await files.fetch('b', SEGMENT, { maxBytes: 2 * CHUNK_BYTES, signal })).toHaveLength(2 * CHUNK_BYTES);
  });

  test('is given up at the first short piece, instead of being read byte by byte', async () => {
    const { files, starts } = nodeWith(1_000 * CHUNK_BYTES, async () => Buffer.alloc(1));
    const fetched = files.fetch('b', SEGMENT, { maxBytes: 1_000 * CHUNK_BYTES, signal });
    await expect(fetched).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await new Promise(setImmediate);
    expect(starts.length).toBeLessThanOrEqual(8);
  });

  test('is no longer read once its reader has given up on a slow node', async () => {
    const answers: (() => void)[] = [];
    const { files, starts, casts } = nodeWith(100 * CHUNK_BYTES, (_start, length) => {
      return new Promise((done) => answers.push(() => done(Buffer.alloc(length))));
    });
    const leaving = new AbortController();
    const fetched = files.fetch('b', SEGMENT, { maxBytes: 100 * CHUNK_BYTES, signal: leaving.signal });
    await until(() => answers.length > 0);
    leaving.abort();
    for (const answer of answers) answer();
    await expect(fetched).rejects.toMatchObject({ message: 'segment.m4s has been closed' });
    expect(starts).toHaveLength(4);
    expect(casts).toEqual(['close']);
  });
});
