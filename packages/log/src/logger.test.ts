import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { createLogger, type LoggerOptions } from './logger.js';
import { createMasker, MASK, printableUrl } from './mask.js';
import { RecentLines } from './recent-lines.js';

const NOON = Date.UTC(2030, 0, 2, 12, 0, 0, 7);

function capture(options: LoggerOptions = {}) {
  const lines: string[] = [];
  const log = createLogger({ now: () => NOON, sink: (line) => lines.push(line), ...options });

  return { log, lines };
}

describe('text lines', () => {
  test('prints ids before the level and the other fields after the event', () => {
    const { log, lines } = capture();

    log.info('room.created', { node: 'bloom@a', roomId: 'r1', maxPeers: null });

    expect(lines).toEqual(['2030-01-02T12:00:00.007Z room_id=r1 [info] room.created node=bloom@a max_peers=null']);
  });

  test('adds the fields of a child, which a call may override', () => {
    const { log, lines } = capture();

    log.child({ requestId: 'q', roomId: 'r1' }).child({ peerId: 'p' }).warn('peer.slow', { roomId: 'r2' });

    expect(lines[0]).toContain('request_id=q room_id=r2 peer_id=p [warning] peer.slow');
  });

  test('keeps a value with line breaks from passing for another line', () => {
    const { log, lines } = capture();

    log.info('x\n2030-01-02 [error] forged', { name: 'a\nb', error: new Error('two\nlines') });

    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('\n');
  });

  test('prints an error with its message and code, and its stack at level error only', () => {
    const { log, lines } = capture();
    const error = Object.assign(new Error('no such file'), { code: 'ENOENT' });

    log.warn('file.failed', { error });
    log.error('file.failed', { error });

    expect(lines[0]).toMatch(/file\.failed error="no such file" error_code=ENOENT$/);
    expect(lines[1]).toContain('\n    Error: no such file\n');
  });
});

test('writes a structured line as one JSON object with time, severity, message and metadata', () => {
  const { log, lines } = capture({ structured: true });

  log.child({ roomId: 'r1' }).error('room.crashed', { error: new TypeError('boom'), peers: [1, 2] });

  const line: unknown = JSON.parse(lines[0] ?? '');
  expect(line).toEqual({
    time: '2030-01-02T12:00:00.007Z',
    severity: 'error',
    message: 'room.crashed',
    metadata: { room_id: 'r1', error: { message: 'boom', stack: expect.any(String) }, peers: [1, 2] },
  });
});

test('drops lines below the level until the level is changed', () => {
  const { log, lines } = capture();
  const child = log.child({});

  child.debug('hidden');
  expect(log.level).toBe('info');
  log.setLevel('debug');
  expect(log.level).toBe('debug');
  child.debug('shown');
  log.setLevel('error');
  child.warn('hidden');

  expect(lines).toHaveLength(1);
  expect(log.recent.last()).toHaveLength(1);
});

test('breaks neither the caller nor later lines when a sink fails', () => {
  const lines: string[] = [];
  const log = createLogger({
    sink: (line) => {
      if (line.endsWith('first')) throw new Error('disk full');
      lines.push(line);
    },
  });

  log.info('first');
  log.info('second');

  expect(lines).toHaveLength(1);
  expect(log.recent.last()).toHaveLength(2);
});

describe('secrets', () => {
  test('masks a registered secret wherever it occurs, including the event and nested values', () => {
    const { log, lines } = capture({ secrets: ['s3cr3t-value', 's3cr3t-value-longer', 'tiny'] });

    log.info('used s3cr3t-value', { a: { b: ['x s3cr3t-value-longer y'] }, error: new Error('bad s3cr3t-value') });

    expect(lines.join()).not.toContain('s3cr3t');
    expect(lines.join()).not.toContain('longer');
    expect(lines.join()).toContain(MASK);
  });

  test('masks a field with a secret name, whatever its value', () => {
    const { log, lines } = capture();

    log.info('x', { apiToken: 'abc', password: 'p', nested: { secretAccessKey: 'k' }, cookie: 'c', tokenCount: 7 });

    expect(lines[0]).toContain(`api_token="${MASK}" password="${MASK}"`);
    expect(lines[0]).toContain('token_count=7');
    expect(lines[0]).not.toMatch(/abc|"p"|"k"|"c"/);
  });

  test('masks a field with a secret name however many other names have been logged', () => {
    const { log, lines } = capture();

    for (let i = 0; i < 1_100; i++) log.info('x', { [`someName${i}`]: i });
    for (let i = 0; i < 2; i++) log.info('x', { lateToken: 'abc', lateName: 'def', [`${'n'.repeat(80)}Token`]: 'ghi' });

    expect(lines.at(-1)).toContain(`late_token="${MASK}" late_name=def`);
    expect(lines.slice(-2).join()).not.toMatch(/abc|ghi/);
  });

  test('prints a URL without user, password and query', () => {
    expect(printableUrl('https://u:p@host:1/path/x?token=abc#frag')).toBe('https://host:1/path/x?...');
    expect(printableUrl('not a url')).toBe(MASK);
  });

  test('does not mask secrets shorter than 6 characters', () => {
    expect(createMasker(['abc', ''])('abcabc')).toBe('abcabc');
  });
});

describe('the ring buffer of recent lines', () => {
  test('keeps the newest lines in order, up to its capacity', () => {
    const ring = new RecentLines(3);
    for (let i = 0; i < 8; i += 1) ring.push({ time: i, level: 'info', event: `e${i}`, fields: {} });

    expect(ring.last().map((line) => line.time)).toEqual([5, 6, 7]);
    expect(ring.last(2).map((line) => line.time)).toEqual([6, 7]);
    expect(ring.last(0)).toEqual([]);
  });

  test('shows a subscriber lines until it unsubscribes, and removes a listener that throws', () => {
    const { log } = capture();
    const seen: string[] = [];
    let broken = 0;

    log.info('before');
    const leave = log.recent.subscribe((line) => seen.push(line.event));
    log.recent.subscribe(() => {
      broken += 1;
      throw new Error('no');
    });
    log.info('one');
    log.info('two');
    leave();
    log.info('three');

    expect(seen).toEqual(['one', 'two']);
    expect(broken).toBe(1);
  });
});

test('writes exactly one short line, whatever is logged', async () => {
  const { log, lines } = capture();
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;

  log.info('cyclic', cyclic);
  log.info('huge', { text: 'x'.repeat(1e6), list: Array.from({ length: 1e4 }, () => 'item') });
  log.info('odd', { f: () => 1, s: Symbol('s'), b: 1n, n: Number.NaN, d: new Date(Number.NaN), u: new Uint8Array(9) });
  expect(lines).toHaveLength(3);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(10_000);

  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.string(), fc.dictionary(fc.string(), fc.anything()), async (event, fields) => {
      // The underlying streams hold some memory per line until the next turn of the event loop.
      if (++runs % 100 === 0) await new Promise(setImmediate);
      lines.length = 0;
      log.info(event, fields);
      expect(lines).toHaveLength(1);
      expect(lines[0]).not.toMatch(/[\n\r]/);
    }),
    { numRuns: fuzzRuns(2_000) },
  );
});
