import { describe, expect, test } from '@jest/globals';
import { FILES_ACTOR, type FilesProtocol, HEAD_BYTES } from './file-messages.js';
import { bytesOf, TestNode } from './testing/test-node.js';

describe('files opened for other nodes', () => {
  test('makes room by closing the least recently read file', async () => {
    const owner = await new TestNode('d').open(2);
    try {
      owner.stream.files.set('big', bytesOf(HEAD_BYTES + 1));
      const ask = (request: string) =>
        owner.system.call<FilesProtocol, 'open'>(FILES_ACTOR, {
          type: 'open',
          request,
          file: { kind: 'stream', roomId: 'r', fileName: 'big' },
        });
      const read = (request: string) =>
        owner.system.call<FilesProtocol, 'read'>(FILES_ACTOR, { type: 'read', request, start: HEAD_BYTES, length: 1 });
      await ask('slow');
      await ask('fast');
      for (const next of ['3', '4', '5']) {
        expect(await read('fast')).toMatchObject({ ok: true });
        expect(await ask(next)).toMatchObject({ ok: true });
      }
      expect(await read('slow')).toMatchObject({ ok: false, code: 'NOT_FOUND' });
      expect(owner.stream.closed).toEqual(['big', 'big', 'big']);
    } finally {
      await owner.close();
    }
  });

  test('closes a file when the name of its request is used again', async () => {
    const owner = await new TestNode('d').open(2);
    try {
      owner.stream.files.set('big', bytesOf(HEAD_BYTES + 1));
      const file = { kind: 'stream', roomId: 'r', fileName: 'big' } as const;
      for (let i = 0; i < 3; i += 1) {
        await owner.system.call<FilesProtocol, 'open'>(FILES_ACTOR, { type: 'open', request: 'same', file });
      }
      expect(owner.stream.closed).toEqual(['big', 'big']);
    } finally {
      await owner.close();
    }
  });

  test('limits the number of files, including those being awaited', async () => {
    const owner = await new TestNode('d').open(2);
    try {
      owner.stream.files.set('x', Buffer.from('x')).set('big', bytesOf(HEAD_BYTES + 1));
      const ask = (request: string, fileName: string, blocking?: { segment: number; part: number }) =>
        owner.system.call<FilesProtocol, 'open'>(FILES_ACTOR, {
          type: 'open',
          request,
          file: { kind: 'stream', roomId: 'r', fileName, ...(blocking === undefined ? {} : { blocking }) },
        });
      expect(await ask('1', 'big')).toMatchObject({ ok: true, value: { size: HEAD_BYTES + 1 } });
      const waiting = ask('2', 'x', { segment: 0, part: 0 });
      await owner.system.idle();
      expect(await ask('3', 'big')).toMatchObject({ ok: true });
      // Both places are taken by waiting requests.
      const other = ask('4', 'x', { segment: 0, part: 1 });
      await owner.system.idle();
      expect(await ask('5', 'x')).toMatchObject({ ok: false, code: 'TOO_BUSY' });
      owner.system.cast<FilesProtocol>(FILES_ACTOR, { type: 'close', request: '4' });
      expect(await other).toMatchObject({ ok: false, code: 'NOT_FOUND' });
      owner.system.cast<FilesProtocol>(FILES_ACTOR, { type: 'close', request: '2' });
      expect(await waiting).toMatchObject({ ok: false, code: 'NOT_FOUND' });
      expect(await ask('6', 'x')).toMatchObject({ ok: true });
      expect(await ask('7', 'big')).toMatchObject({ ok: true });
      owner.system.cast<FilesProtocol>(FILES_ACTOR, { type: 'close', request: '7' });
      expect(
        await owner.system.call<FilesProtocol, 'read'>(FILES_ACTOR, {
          type: 'read',
          request: '7',
          start: 0,
          length: 9,
        }),
      ).toMatchObject({ ok: false, code: 'NOT_FOUND' });
      expect(owner.stream.closed).toEqual(['big', 'big', 'x', 'big']);
    } finally {
      await owner.close();
    }
  });
});
