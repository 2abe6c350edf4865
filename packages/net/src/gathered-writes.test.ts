import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { gatheredWrites } from './gathered-writes.js';

/** Returns a stream that records what each write of its owner would give to the system. */
function recorder(): { stream: Writable; calls: string[] } {
  const calls: string[] = [];
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      calls.push(String(chunk));
      done();
    },
    writev: (chunks, done) => {
      calls.push(chunks.map(({ chunk }) => String(chunk)).join(' '));
      done();
    },
  });

  return { stream, calls };
}

test('gives the frames of one turn to the system at once, in order with those of others', async () => {
  const { stream, calls } = recorder();
  const write = gatheredWrites(stream);
  write(Buffer.from('a'));
  stream.write('ping');
  write(Buffer.from('b'));
  expect(calls).toEqual([]);
  await nextTurn();
  write(Buffer.from('c'));
  await nextTurn();
  expect(calls).toEqual(['a ping b', 'c']);
});

test('loses nothing that was written before the stream ended in the same turn', async () => {
  const { stream, calls } = recorder();
  const write = gatheredWrites(stream);
  write(Buffer.from('a'));
  write(Buffer.from('b'));
  stream.end('c');
  await nextTurn();
  expect(calls).toEqual(['a b c']);
});
