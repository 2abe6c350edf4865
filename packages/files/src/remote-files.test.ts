import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { HEAD_BYTES } from './file-messages.js';
import { type FilesPort, RemoteFiles } from './remote-files.js';

test.each(['before the first piece', 'after it'] as const)(
  'a file whose reader is gone %s is closed once',
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
