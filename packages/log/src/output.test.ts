import { expect, test } from '@jest/globals';
import { Output } from './output.js';

/** A pipe that accepts `room` bytes before its reader stalls. */
class Pipe {
  room = Number.POSITIVE_INFINITY;
  text = '';
  writes: number[] = [];
  pausedMs = 0;
  onPause = (): void => undefined;
  readonly output = new Output({
    write: (bytes) => {
      const taken = Math.min(this.room, bytes.length);
      if (taken === 0) throw Object.assign(new Error('resource temporarily unavailable'), { code: 'EAGAIN' });
      this.room -= taken;
      this.writes.push(bytes.length);
      this.text += Buffer.from(bytes.subarray(0, taken)).toString();
      return taken;
    },
    pause: (ms) => {
      this.pausedMs += ms;
      this.onPause();
    },
    dropped: (lines) => `dropped ${lines}`,
  });
}

test('writes a line at once, and its rest when the reader continues', () => {
  const pipe = new Pipe();
  pipe.output.line('one');
  expect(pipe.text).toBe('one\n');
  pipe.room = 2;
  pipe.output.line('two');
  pipe.output.line('three');
  expect(pipe.text).toBe('one\ntw');
  pipe.onPause = () => void (pipe.room += 3);
  pipe.output.end();
  expect(pipe.text).toBe('one\ntwo\nthree\n');
});

test('writes queued lines in batches that a pipe accepts atomically', () => {
  const pipe = new Pipe();
  pipe.room = 0;
  const lines = Array.from({ length: 10_000 }, (_, i) => (i === 5_000 ? 'long '.repeat(2_000) : `line ${i}`));
  for (const line of lines) pipe.output.line(line);
  pipe.room = Number.POSITIVE_INFINITY;
  pipe.output.end();
  expect(pipe.text).toBe(`${lines.join('\n')}\n`);
  expect(pipe.writes.length).toBeLessThan(40);
  expect(pipe.writes.filter((bytes) => bytes > 4_096)).toEqual([10_001]);
});

test('waits for a slow reader at exit, but not forever', () => {
  const pipe = new Pipe();
  pipe.room = 0;
  pipe.output.line('lost');
  pipe.output.end();
  expect(pipe.text).toBe('');
  expect(pipe.pausedMs).toBe(2_000);
});

test('drops lines for a stalled reader, and logs their number', () => {
  const pipe = new Pipe();
  pipe.room = 0;
  const line = 'x'.repeat(999_999);
  for (let each = 0; each < 10; each += 1) pipe.output.line(line);
  pipe.room = Number.POSITIVE_INFINITY;
  pipe.output.end();
  expect(pipe.text.length).toBe(8_000_000 + 'dropped 2\n'.length);
  expect(pipe.text.endsWith('x\ndropped 2\n')).toBe(true);
});

test('loses only lines when the output is closed', () => {
  const output = new Output({
    write: () => {
      throw Object.assign(new Error('broken pipe'), { code: 'EPIPE' });
    },
    pause: () => undefined,
    dropped: String,
  });
  output.line('one');
  output.end();
});
