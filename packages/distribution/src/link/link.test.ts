import { describe, expect, jest, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { atom, encode, encodePart, Pid, Ref, type Term, TermWriter, tuple } from '@bloom/etf';
import fc from 'fast-check';
import { type Control, write } from './control.js';
import { ownFlags } from '../handshake/flags.js';
import { FrameBudget, FrameDecoder } from './frames.js';
import { asGenCall } from './gen-call.js';
import type { LinkLimits } from '../limits.js';
import { type CloseReason, Link } from './link.js';
import type { Wire } from '../world.js';
import { Ticker } from './ticker.js';

const NIGHTLY = process.env['BLOOM_NIGHTLY'] !== undefined;
const PEER = 'remote@h';
const us = new Pid('us@h', 101, 0, 5);
const them = new Pid(PEER, 101, 0, 9);

interface Bench {
  readonly link: Link;
  readonly controls: { control: Control; payload: Term }[];
  readonly closes: { reason: CloseReason; detail: string }[];
  readonly written: Buffer[];
  /** True while the transport accepts nothing, as if the remote node read nothing. */
  stuck: boolean;
  turn(): void;
  /** Returns the written frames, including ticks. */
  frames(): string[];
}

function bench(flags = ownFlags(false), limits: Partial<LinkLimits> = {}): Bench {
  const deferred: (() => void)[] = [];
  let pending = 0;
  const result: Bench = {
    controls: [],
    closes: [],
    written: [],
    stuck: false,
    turn: () => {
      for (const run of deferred.splice(0)) run();
    },
    frames: () => {
      const frames: string[] = [];
      new FrameDecoder().push(
        Buffer.concat(result.written),
        (bytes, start, end) => frames.push(bytes.toString('hex', start, end)) > 0,
      );
      return frames;
    },
    link: undefined as unknown as Link,
  };
  const wire: Wire = {
    get pendingBytes() {
      return pending;
    },
    write: (bytes, done) => {
      result.written.push(Buffer.from(bytes));
      if (result.stuck) pending += bytes.length;
      else done?.();
    },
    end: () => {},
    destroy: () => {},
  };
  const link = new Link({
    remote: { name: PEER, creation: 9, flags },
    ownFlags: ownFlags(false),
    dialled: true,
    wire,
    limits: { maxFrameBytes: 1_000_000, highWaterBytes: 10_000, overflow: 'drop', ...limits },
    events: {
      control: (_, control, payload) => result.controls.push({ control, payload }),
      closed: (_, reason, detail) => result.closes.push({ reason, detail }),
    },
    defer: (run) => deferred.push(run),
  });
  return Object.assign(result, { link });
}

function frame(control: Term, payload?: Term): Buffer {
  const writer = new TermWriter();
  writer.u32(0);
  writer.byte(112);
  writer.term(control);
  if (payload !== undefined) writer.term(payload);
  writer.patchU32(0, writer.length - 4);
  return writer.take();
}

describe('receiving', () => {
  test('understands every control message', () => {
    const ref = new Ref(PEER, 9, [1, 2, 3]);
    const name = atom('calc');
    const unused = atom('');
    const mfa = tuple(atom('erpc'), atom('execute_call'), 4);
    const token = atom('token');
    const cases: [Term, Term | undefined, object][] = [
      [tuple(1, them, us), undefined, { op: 'link', from: them, to: us }],
      [tuple(2, unused, us), 'm', { op: 'send', from: undefined, to: us }],
      [tuple(12, unused, us, token), 'm', { op: 'send', from: undefined, to: us }],
      [tuple(3, them, us, atom('x')), undefined, { op: 'exit', linked: true, reason: { term: atom('x') } }],
      [tuple(13, them, us, token, atom('x')), undefined, { op: 'exit', linked: true, reason: { term: atom('x') } }],
      [tuple(4, them, us), undefined, { op: 'ignored' }],
      [tuple(5), undefined, { op: 'ignored' }],
      [tuple(7, them, us), undefined, { op: 'ignored' }],
      [tuple(6, them, unused, name), 'm', { op: 'send', from: them, to: 'calc' }],
      [tuple(6, them, unused, true), 'm', { op: 'send', from: them, to: 'true' }],
      [tuple(16, them, unused, name, token), 'm', { op: 'send', from: them, to: 'calc' }],
      [tuple(8, them, us, undefined), undefined, { op: 'exit', linked: false, reason: { term: undefined } }],
      [tuple(18, them, us, token, 5), undefined, { op: 'exit', linked: false, reason: { term: 5 } }],
      [tuple(19, them, us, ref), undefined, { op: 'monitor', from: them, to: us, ref }],
      [tuple(19, them, name, ref), undefined, { op: 'monitor', from: them, to: 'calc', ref }],
      [tuple(20, them, us, ref), undefined, { op: 'demonitor' }],
      [tuple(21, them, us, ref, 'why'), undefined, { op: 'down', from: them, to: us, ref, reason: { term: 'why' } }],
      [tuple(22, them, us), 'm', { op: 'send', from: them, to: us }],
      [tuple(23, them, us, token), 'm', { op: 'send', from: them, to: us }],
      [tuple(24, them, us), 'why', { op: 'exit', linked: true, reason: { term: 'why' } }],
      [tuple(25, them, us, token), 'why', { op: 'exit', linked: true, reason: { term: 'why' } }],
      [tuple(26, them, us), 'why', { op: 'exit', linked: false, reason: { term: 'why' } }],
      [tuple(27, them, us, token), 'why', { op: 'exit', linked: false, reason: { term: 'why' } }],
      [tuple(28, name, us, ref), 'why', { op: 'down', from: 'calc', to: us, ref, reason: { term: 'why' } }],
      [
        tuple(29, ref, them, them, mfa, [atom('monitor')]),
        [1],
        {
          op: 'spawn',
          request: { ref, from: them, module: 'erpc', fun: 'execute_call', arity: 4, monitor: true, link: false },
        },
      ],
      [
        tuple(30, ref, them, them, mfa, [tuple(atom('link'), []), atom('x')], token),
        [],
        { op: 'spawn', request: { link: true, monitor: false } },
      ],
      [tuple(31, ref, us, 2, them), undefined, { op: 'spawned', ref, to: us, flags: 2, result: them }],
      [tuple(32, ref, us, 0, atom('notsup'), token), undefined, { op: 'spawned', result: atom('notsup') }],
      [tuple(33, them, ref), 'm', { op: 'send', from: them, to: ref }],
      [tuple(34, them, ref, token), 'm', { op: 'send', from: them, to: ref }],
      [tuple(35, 2n ** 63n, them, us), undefined, { op: 'unlink', id: 2n ** 63n, from: them, to: us }],
      [tuple(36, 1, them, us), undefined, { op: 'unlink-ack', id: 1 }],
    ];
    for (const [control, payload, expected] of cases) {
      const { link, controls, closes } = bench();
      link.receive(frame(control, payload));
      expect(closes).toEqual([]);
      expect(controls).toHaveLength(1);
      expect(controls[0]?.control).toMatchObject(expected);
    }
  });

  test('reads a real frame from Erlang', () => {
    const { link, controls } = bench();
    const body = Buffer.concat([
      Buffer.from('70836804610658', 'hex'),
      encodePart(atom(PEER)),
      Buffer.from('000000570000000000000009770077', 'hex'),
      Buffer.from('0463616c63836803770568656c6c6f61016d0000000362696e', 'hex'),
    ]);
    link.receive(Buffer.concat([u32(body.length), body]));
    expect(controls).toEqual([
      { control: { op: 'send', from: new Pid(PEER, 0x57, 0, 9), to: 'calc' }, payload: tuple(atom('hello'), 1, 'bin') },
    ]);
  });

  test('accepts frames split anywhere, with ticks between them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(200), { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        (sizes, cuts) => {
          const { link, controls, closes } = bench();
          const all = Buffer.concat(
            sizes.flatMap((size, i) => [frame(tuple(22, them, us), Buffer.alloc(size, i)), u32(0)]),
          );
          for (let at = 0, i = 0; at < all.length; i++) {
            const cut = cuts[i % cuts.length] as number;
            link.receive(all.subarray(at, at + cut));
            at += cut;
          }
          expect(closes).toEqual([]);
          expect(controls.map(({ payload }) => encode(payload))).toEqual(
            sizes.map((size, i) => encode(Buffer.alloc(size, i))),
          );
          expect(link.counters).toMatchObject({ framesIn: sizes.length, ticksIn: sizes.length, bytesIn: all.length });
        },
      ),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('keeps the tag of a call unchanged', () => {
    const { link, controls } = bench();
    const call = Buffer.from(`8368037709${Buffer.from('$gen_call').toString('hex')}6802`, 'hex');
    // The tag [2.0]: decoded and encoded again it would be [2].
    const tag = Buffer.from('6c000000014640000000000000006a', 'hex');
    const bytes = Buffer.concat([
      Buffer.from('70', 'hex'),
      encode(tuple(6, them, atom(''), atom('calc'))),
      call,
      encodePart(them),
      tag,
      encodePart(7),
    ]);
    link.receive(Buffer.concat([u32(bytes.length), bytes]));
    const got = asGenCall(controls[0]?.payload as Term);
    expect(got?.request).toBe(7);
    expect(Buffer.from(got?.tag.bytes ?? [])).toEqual(tag);
  });

  test.each([
    ['a frame of another type', Buffer.from('0000000183', 'hex')],
    ['an unknown control number', frame(tuple(200))],
    ['a control message of the wrong size', frame(tuple(22, them))],
    ['a control message that is no tuple', frame([1])],
    [
      'bytes after a message',
      Buffer.concat([u32(frame(tuple(5)).length - 3), frame(tuple(5)).subarray(4), Buffer.from([1])]),
    ],
    ['a message without its payload', frame(tuple(22, them, us))],
    ['the malformed frame 70 83 c8', Buffer.from('000000037083c8', 'hex')],
  ])('closes on %s', (_, bytes) => {
    const { link, closes, controls } = bench();
    link.receive(Buffer.concat([bytes, frame(tuple(22, them, us), 1)]));
    expect(closes).toMatchObject([{ reason: 'malformed' }]);
    expect(controls).toEqual([]);
  });

  test('closes on an oversized frame before it has arrived', () => {
    const { link, closes } = bench();
    link.receive(u32(1_000_001));
    expect(closes).toMatchObject([{ reason: 'frame_too_big' }]);
  });

  test('drops and counts messages in the name of a third node', () => {
    const { link, controls, closes } = bench();
    const stranger = new Pid('other@h', 1, 0, 1);
    link.receive(frame(tuple(22, stranger, us), 1));
    link.receive(frame(tuple(19, stranger, us, new Ref('other@h', 1, [1])), undefined));
    link.receive(frame(tuple(22, them, us), stranger));
    expect(link.counters.foreign).toBe(2);
    expect(controls.map(({ payload }) => payload)).toEqual([stranger]);
    expect(closes).toEqual([]);
  });

  test('survives any frames: random ones, and real ones with some bytes changed', () => {
    const ref = new Ref(PEER, 9, [1]);
    const real = fc.constantFrom(
      frame(tuple(22, them, us), tuple(atom('$gen_call'), tuple(them, ref), { a: [1, 2.5, 'x'] })),
      frame(tuple(6, them, atom(''), atom('calc')), [1, 2, 3]),
      frame(tuple(19, them, atom('calc'), ref)),
      frame(tuple(28, them, us, ref), tuple(1, 2)),
      frame(tuple(29, ref, them, them, tuple(atom('m'), atom('f'), 1), [atom('monitor')]), [1]),
      frame(tuple(35, 5, them, us)),
    );
    const edited = fc.tuple(real, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 })).map(([bytes, edits]) => {
      const copy = Buffer.from(bytes);
      for (const [at, value] of edits) copy[4 + (at % (copy.length - 4))] = value;
      return copy;
    });
    const random = fc
      .uint8Array({ maxLength: 60 })
      .map((body) => Buffer.concat([u32(body.length + 1), Buffer.from([112]), body]));
    fc.assert(
      fc.property(fc.array(fc.oneof(edited, random), { minLength: 1, maxLength: 4 }), (frames) => {
        const { link } = bench();
        for (const bytes of frames) link.receive(bytes);
      }),
      { numRuns: fuzzRuns(NIGHTLY ? 1_000_000 : 10_000) },
    );
  }, 900_000);
});

describe('sending', () => {
  test('writes once per turn, and immediately when a batch is full', () => {
    const { link, written, turn, frames } = bench();
    for (let i = 0; i < 10; i++) link.send(them, i, { from: us });
    expect(written).toHaveLength(0);
    turn();
    expect(written).toHaveLength(1);
    expect(frames()).toHaveLength(10);
    link.send(them, Buffer.alloc(70_000), { from: us });
    expect(written).toHaveLength(2);
  });

  test('uses the message forms that the remote node understands', () => {
    const ops = (flags: bigint): number[] => {
      const { link, turn, frames } = bench(flags);
      link.send(them, 1, { from: us });
      link.send('name', 1, { from: us });
      link.signal((writer, payload) =>
        write.exit(writer, { linked: true, from: us, to: them }, { term: 'why', payload }),
      );
      link.signal((writer, payload) =>
        write.exit(writer, { linked: false, from: us, to: them }, { term: 'why', payload }),
      );
      link.signal((writer, payload) =>
        write.down(writer, { from: 'calc', to: them, ref: new Ref(PEER, 9, [1]) }, { term: 'why', payload }),
      );
      turn();
      return frames().map((bytes) => Number.parseInt(bytes.slice(10, 12), 16));
    };
    expect(ops(ownFlags(false))).toEqual([22, 6, 24, 26, 28]);
    expect(ops(0x407074f9cn)).toEqual([2, 6, 3, 8, 21]);
  });

  test('leaves nothing behind of a message that cannot be sent', () => {
    const { link, turn, frames } = bench();
    link.send(them, 'before', { from: us });
    expect(() => link.send(them, [1, Number.NaN], { from: us })).toThrow(
      expect.objectContaining({ code: 'NOT_ENCODABLE' }),
    );
    expect(() => link.send(them, Buffer.alloc(1_000_001), { from: us })).toThrow(
      expect.objectContaining({ code: 'FRAME_TOO_BIG' }),
    );
    link.send(them, 'after', { from: us });
    turn();
    expect(
      frames().map(
        (bytes) =>
          bytes.endsWith(encodePart('before').toString('hex')) || bytes.endsWith(encodePart('after').toString('hex')),
      ),
    ).toEqual([true, true]);
  });

  test('spends a limited amount of memory on a remote node that reads nothing', () => {
    const room = bench();
    room.stuck = true;
    const message = Buffer.alloc(1_000);
    for (let i = 0; i < 1_000; i++) {
      room.link.send(them, message, { from: us });
      room.turn();
    }
    expect(room.link.pendingBytes).toBeLessThan(12_000);
    expect(room.link.counters.dropped).toBeGreaterThan(980);
    expect(room.link.send(them, 1, { from: us, kind: 'query' })).toBe('overflow');
    expect(room.closes).toEqual([]);
    // Messages on which others depend are still sent, up to twice that amount.
    for (let i = 0; i < 1_000; i++) room.link.signal((writer) => writer.raw(message));
    expect(room.closes).toMatchObject([{ reason: 'slow_peer' }]);
    expect(room.link.pendingBytes).toBeLessThan(23_000);
  });

  test('delays no other message for a large one in transit, and applies the limit to those that wait behind it', () => {
    const room = bench(ownFlags(false), { highWaterBytes: 100_000 });
    room.stuck = true;
    room.link.send(them, Buffer.alloc(500_000), { from: us });
    room.turn();
    expect(room.link.send(them, 1, { from: us })).toBe('sent');
    expect(room.link.send(them, 1, { from: us, kind: 'query' })).toBe('sent');
    expect(room.link.signal((writer) => writer.raw(Buffer.alloc(100)))).toBe('sent');
    expect(room.link.send(them, Buffer.alloc(500_000), { from: us })).toBe('overflow');
    for (let i = 0; i < 1_000; i++) room.link.send(them, Buffer.alloc(1_000), { from: us });
    expect(room.link.send(them, 1, { from: us, kind: 'query' })).toBe('overflow');
    expect(room.link.pendingBytes).toBeLessThan(602_000);
    expect(room.closes).toEqual([]);
  });

  test('disconnects a remote node that reads nothing if the policy says so', () => {
    const { link, turn, closes, ...room } = bench(ownFlags(false), { overflow: 'close' });
    Object.assign(room, { stuck: true });
    for (let i = 0; i < 20; i++) link.send(them, Buffer.alloc(1_000), { from: us });
    expect(closes).toMatchObject([{ reason: 'slow_peer' }]);
    expect(link.send(them, 1, { from: us })).toBe('overflow');
    turn();
  });
});

describe('ticks', () => {
  test('sends a tick only when nothing else was sent', () => {
    const { link, turn, frames } = bench();
    link.check(true);
    link.send(them, 1, { from: us });
    turn();
    link.check(true);
    link.check(true);
    expect(frames().map((bytes) => bytes === '')).toEqual([true, false, true]);
    expect(link.counters.ticksOut).toBe(2);
  });

  test('closes after four consecutive silent rounds, and any byte restarts the count', () => {
    const { link, closes } = bench();
    for (let i = 0; i < 3; i++) link.check(true);
    link.receive(Buffer.from([0]));
    for (let i = 0; i < 4; i++) link.check(true);
    expect(closes).toEqual([]);
    link.check(true);
    expect(closes).toMatchObject([{ reason: 'net_tick_timeout' }]);
  });

  test('does not judge in rounds after a stall of the event loop', () => {
    const { link, closes } = bench();
    let now = 0;
    let next: { run: () => void; at: number } | undefined;
    const clock = {
      now: () => now,
      wall: () => now,
      setTimeout: (run: () => void, ms: number) => {
        next = { run, at: now + ms };
      },
      clearTimeout: () => {},
    };
    const rounds: boolean[] = [];
    const ticker = new Ticker(clock, 8_000, (judge) => {
      rounds.push(judge);
      link.check(judge);
    });
    ticker.start();
    const fire = (lateMs: number): void => {
      now = (next?.at ?? 0) + lateMs;
      next?.run();
    };
    for (let i = 0; i < 3; i++) fire(10);
    fire(60_000);
    fire(5);
    expect(rounds).toEqual([true, true, true, false, true]);
    expect(closes).toMatchObject([{ reason: 'net_tick_timeout' }]);
    ticker.stop();
  });
});

describe('frames', () => {
  test('takes little more memory than their bytes for frames in tiny pieces', () => {
    const decoder = new FrameDecoder();
    const frame = Buffer.concat([u32(300_000), Buffer.alloc(300_000, 7)]);
    const got: Buffer[] = [];
    const keep = (bytes: Buffer, start: number, end: number): boolean => got.push(bytes.subarray(start, end)) > 0;
    const concat = jest.spyOn(Buffer, 'concat');
    for (const byte of frame) decoder.push(Buffer.from([byte]), keep);
    const [pieces] = concat.mock.calls[0] as [readonly Buffer[]];
    concat.mockRestore();
    expect(pieces.length).toBeLessThan(10);
    expect(got).toEqual([frame.subarray(4)]);
  });

  test('shares one budget among incomplete frames, which a closed connection gives back', () => {
    const budget = new FrameBudget(100_000);
    const [one, two] = [new FrameDecoder(1_000_000, budget), new FrameDecoder(1_000_000, budget)];
    const half = Buffer.concat([u32(500_000), Buffer.alloc(60_000)]);
    const more = Buffer.alloc(10_000);
    const ignore = (): boolean => true;
    expect(one.push(half, ignore)).toBe('ok');
    expect(one.push(more, ignore)).toBe('ok');
    expect(two.push(half, ignore)).toBe('ok');
    expect(two.push(more, ignore)).toBe('too_big');
    two.clear();
    expect(one.push(more, ignore)).toBe('ok');
    expect(one.push(Buffer.alloc(420_000), ignore)).toBe('ok');
    expect(budget.used).toBe(0);
  });

  test('assembles large frames once', () => {
    const decoder = new FrameDecoder();
    const big = Buffer.alloc(30 * 1024 * 1024, 7);
    const all = Buffer.concat([u32(big.length), big]);
    let got = 0;
    const concat = jest.spyOn(Buffer, 'concat');
    for (let at = 0; at < all.length; at += 65_536) {
      expect(decoder.push(all.subarray(at, at + 65_536), (_, from, to) => (got += to - from) > 0)).toBe('ok');
    }
    expect(got).toBe(big.length);
    expect(decoder.pendingBytes).toBe(0);
    // Joining at every piece would copy 7 GiB.
    expect(concat).toHaveBeenCalledTimes(1);
    concat.mockRestore();
  });
});

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
