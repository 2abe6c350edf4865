import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, test } from '@jest/globals';
import { openActorSystem, type Behaviour } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { until } from '@bloom/time/testing';
import { HEAD_BYTES } from './file-messages.js';
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
