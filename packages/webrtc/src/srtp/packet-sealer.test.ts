import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { OutboundHeader } from '@bloom/rtp';
import fc from 'fast-check';
import { ProtectionProfileAes128CmHmacSha1_80, SrtpSession } from 'werift';
import { createPacketSealer } from './create-sealer.js';
import type { DatagramSink } from './datagram-sink.js';
import type { PacketSealer, SealStream } from './packet-sealer.js';
import { SrtpReceiveSession } from './receive-session.js';
import { SrtpSendSession } from './send-session.js';

class Recorder implements DatagramSink {
  headroom = 0;
  keep = false;
  datagrams: Buffer[] = [];
  slots: number[] = [];

  send(datagram: Buffer, slot: number): boolean {
    datagram.fill(0xcc, 0, this.headroom);
    this.datagrams.push(this.keep ? datagram : Buffer.from(datagram));
    this.slots.push(slot);
    return !this.keep;
  }
}

class Receiver {
  readonly keys = { masterKey: randomBytes(16), masterSalt: randomBytes(14) };
  readonly sink = new Recorder();
  readonly session = new SrtpSendSession(this.keys);
  readonly opener = new SrtpReceiveSession(this.keys);
  readonly header: OutboundHeader;
  readonly stream: SealStream;
  readonly expected: Buffer[] = [];

  constructor(
    readonly sealer: PacketSealer,
    readonly ssrc: number,
    mid?: string,
  ) {
    this.header = new OutboundHeader({
      ssrc,
      payloadType: 96,
      ...(mid === undefined ? {} : { mid, extensionIds: { mid: 4, transportCc: 3 } }),
    });
    this.stream = sealer.openStream(this.session, ssrc, this.sink);
  }

  /** Commits one packet of the round and records the expected result. */
  add(payload: Buffer, index: number, prefix = Buffer.alloc(0), skip = 0): boolean {
    const { arena } = this.sealer;
    const at = this.sealer.reserve();
    if (at < 0) return false;
    const header = this.header.write(arena, at, index % 3 === 0, index, index * 3000, index % 65_536);
    prefix.copy(arena, at + header);
    this.expected.push(Buffer.concat([arena.subarray(at, at + header), prefix, payload.subarray(skip)]));
    return this.sealer.commit(this.stream, header, prefix.length, skip, index);
  }

  /** Opens everything recorded with our own receive side and compares it with what was committed. */
  verify(): void {
    expect(this.sink.datagrams.length).toBe(this.expected.length);
    for (const [i, datagram] of this.sink.datagrams.entries()) {
      const copy = Buffer.from(datagram.subarray(this.sink.headroom));
      const end = this.opener.open(copy);
      expect(end).toBeGreaterThan(0);
      expect(copy.subarray(0, end).equals(this.expected[i]!)).toBe(true);
    }
    this.sink.datagrams.length = 0;
    this.expected.length = 0;
  }
}

function round(sealer: PacketSealer, payload: Buffer, body: () => void): void {
  const source = Buffer.concat([Buffer.alloc(5, 1), payload, Buffer.alloc(5, 2)]);
  sealer.begin(source, 5, 5 + payload.length);
  body();
  sealer.end();
}

test('chooses WebAssembly where it is available', () => {
  expect(createPacketSealer().kind).toBe('wasm');
  expect(createPacketSealer({ kind: 'javascript' }).kind).toBe('javascript');
});

test('refuses packets larger than any network carries when the sealer is created', () => {
  expect(() => createPacketSealer({ maxPacketBytes: 65_536 })).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }));
});

describe.each(['wasm', 'javascript'] as const)('the %s sealer', (kind) => {
  test.each([1, 2, 3, 4, 5, 9])(
    'seals one packet for %i receivers with different headers, prefixes and lengths',
    (count) => {
      const sealer = createPacketSealer({ kind });
      const receivers = Array.from(
        { length: count },
        (_, i) => new Receiver(sealer, 1000 + i, ['0', undefined, '12', 'audio-long-mid'][i % 4]),
      );
      // Lengths around every boundary of cipher and hash blocks.
      for (let length = 4; length < 150; length += 1) {
        const payload = randomBytes(length);
        round(sealer, payload, () => {
          for (const [i, receiver] of receivers.entries()) {
            const prefix = randomBytes((i + length) % 7);
            expect(receiver.add(payload, 65_530 + length, prefix, Math.min(4, i % 5))).toBe(true);
          }
        });
      }
      for (const receiver of receivers) receiver.verify();
    },
  );

  test('seals packets that werift opens, across the wrap', () => {
    const sealer = createPacketSealer({ kind });
    const receivers = [1, 2, 3, 4, 5].map((i) => new Receiver(sealer, 0xf0000000 + i, String(i)));
    const theirs = receivers.map(
      ({ keys }) =>
        new SrtpSession({
          profile: ProtectionProfileAes128CmHmacSha1_80,
          keys: {
            localMasterKey: keys.masterKey,
            localMasterSalt: keys.masterSalt,
            remoteMasterKey: keys.masterKey,
            remoteMasterSalt: keys.masterSalt,
          },
        }),
    );
    for (let index = 65_400; index < 65_700; index += 1) {
      const payload = randomBytes(1 + ((index * 211) % 1200));
      round(sealer, payload, () => receivers.forEach((receiver) => receiver.add(payload, index)));
    }
    for (const [i, receiver] of receivers.entries()) {
      expect(receiver.sink.datagrams.length).toBe(300);
      for (const [at, datagram] of receiver.sink.datagrams.entries()) {
        expect(theirs[i]!.decrypt(datagram).equals(receiver.expected[at]!)).toBe(true);
      }
    }
  });

  test('seals packets out of order, with gaps and twice in one round', () => {
    const sealer = createPacketSealer({ kind, slots: 8, keystreamBytes: 3 * 10_240 });
    let checked = 0;
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(5), fc.integer({ min: -40, max: 120 }), fc.nat(1200)), {
          minLength: 1,
          maxLength: 40,
        }),
        fc.integer({ min: 100, max: 5_000_000 }),
        (steps, start) => {
          // More streams than keystream memory, so that both paths are taken.
          const fresh = Array.from({ length: 6 }, (_, i) => new Receiver(sealer, 7 + i));
          const used = fresh.map(() => new Set<number>());
          const newest = fresh.map(() => start);
          const payload = randomBytes(1200);
          round(sealer, payload, () => {
            for (const [which, by, length] of steps) {
              const index = newest[which]! + by;
              if (used[which]!.has(index)) continue;
              used[which]!.add(index);
              newest[which] = Math.max(newest[which]!, index);
              fresh[which]!.add(payload, index, Buffer.from([1, 2]), 1200 - length);
            }
          });
          for (const receiver of fresh) {
            for (const [i, datagram] of receiver.sink.datagrams.entries()) {
              // Sealed separately by the other implementation: the bytes must match.
              const plain = receiver.expected[i]!;
              const reference = referenceSeal(receiver.session, plain, receiver.ssrc, start, plain.readUInt16BE(2));
              expect(datagram.equals(reference)).toBe(true);
              checked += 1;
            }
            sealer.closeStream(receiver.stream);
          }
        },
      ),
      { numRuns: fuzzRuns(150) },
    );
    expect(checked).toBeGreaterThan(500);
    expect(sealer.counters).toEqual({ sealed: checked, overruns: 0, oversized: 0, sinkFaults: 0 });
  });

  test("leaves room in front of the packet for the path's framing", () => {
    const sealer = createPacketSealer({ kind });
    const receiver = new Receiver(sealer, 5);
    receiver.sink.headroom = 4;
    const payload = randomBytes(100);
    round(sealer, payload, () => receiver.add(payload, 1));
    expect(receiver.sink.datagrams[0]!.length).toBe(4 + 12 + 100 + 10);
    receiver.verify();
  });

  test('does not touch a datagram that is still being sent, and drops packets when all slots are in use', () => {
    const sealer = createPacketSealer({ kind, slots: 6 });
    const receiver = new Receiver(sealer, 5);
    receiver.sink.keep = true;
    const payload = randomBytes(300);
    for (let index = 1; index <= 6; index += 1) round(sealer, payload, () => receiver.add(payload, index));
    round(sealer, payload, () => expect(receiver.add(payload, 7)).toBe(false));
    expect(sealer.counters.overruns).toBe(1);
    expect(new Set(receiver.sink.slots).size).toBe(6);

    // Release one slot, twice: exactly one more packet may be sent.
    const freed = receiver.sink.slots[2]!;
    sealer.release(freed);
    sealer.release(freed);
    sealer.release(999);
    const kept = receiver.sink.datagrams
      .filter((_, i) => i !== 2)
      .map((datagram) => [datagram, Buffer.from(datagram)] as const);
    round(sealer, payload, () => {
      expect(receiver.add(payload, 8)).toBe(true);
    });
    round(sealer, payload, () => expect(receiver.add(payload, 9)).toBe(false));
    expect(receiver.sink.slots[6]).toBe(freed);
    for (const [datagram, before] of kept) expect(datagram.equals(before)).toBe(true);
  });

  test('uses no slot for a reservation without a commit', () => {
    const sealer = createPacketSealer({ kind, slots: 1 });
    sealer.begin(Buffer.alloc(10), 0, 10);
    for (let i = 0; i < 10; i += 1) expect(sealer.reserve()).toBeGreaterThanOrEqual(0);
  });

  test('isolates a sink that throws from the others', () => {
    const sealer = createPacketSealer({ kind, slots: 5 });
    const good = [1, 2, 3].map((ssrc) => new Receiver(sealer, ssrc));
    const bad = new Receiver(sealer, 9);
    bad.sink.send = () => {
      throw new Error('socket closed');
    };
    const payload = randomBytes(50);
    for (let index = 1; index < 20; index += 1) {
      round(sealer, payload, () =>
        [good[0]!, bad, good[1]!, good[2]!].forEach((receiver) => receiver.add(payload, index)),
      );
    }
    for (const receiver of good) receiver.verify();
    expect(sealer.counters).toEqual({ sealed: 57, overruns: 0, oversized: 0, sinkFaults: 19 });
  });

  test('counts and drops a packet that does not fit, and continues the stream', () => {
    const sealer = createPacketSealer({ kind, maxPacketBytes: 500 });
    const receiver = new Receiver(sealer, 1);
    const fits = randomBytes(478);
    round(sealer, fits, () => expect(receiver.add(fits, 1)).toBe(true));
    const tooLong = randomBytes(479);
    round(sealer, tooLong, () => expect(receiver.add(tooLong, 2)).toBe(false));
    const huge = randomBytes(5000);
    round(sealer, huge, () => expect(receiver.add(huge, 2)).toBe(false));
    round(sealer, fits, () => expect(receiver.add(fits, 2, Buffer.alloc(0), 600)).toBe(false));
    expect(sealer.counters.oversized).toBe(3);
    receiver.expected.length = 1;
    receiver.verify();
  });

  test('sends nothing more on a closed stream, and reuses its memory', () => {
    const sealer = createPacketSealer({ kind, keystreamBytes: 10_240 });
    const payload = randomBytes(50);
    for (let i = 0; i < 5; i += 1) {
      const receiver = new Receiver(sealer, i);
      round(sealer, payload, () => receiver.add(payload, 40));
      receiver.verify();
      sealer.closeStream(receiver.stream);
      sealer.closeStream(receiver.stream);
      round(sealer, payload, () => expect(receiver.add(payload, 41)).toBe(false));
      expect(receiver.sink.datagrams.length).toBe(0);
    }
  });
});

test('has committed WebAssembly that matches its compiled source', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-wasm-'));
  try {
    const wasm = new URL('../../wasm/', import.meta.url);
    execFileSync(process.execPath, [new URL('build.mjs', wasm).pathname, join(folder, 'out.wasm')]);
    const fresh = readFileSync(join(folder, 'out.wasm'));
    expect(fresh.equals(readFileSync(new URL('protect4.wasm', wasm)))).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 30_000);

/** Seals with the session's in-place code: a new session per packet, advanced to the right roll-over count. */
function referenceSeal(session: SrtpSendSession, plain: Buffer, ssrc: number, near: number, sequence: number): Buffer {
  let index = near - (near % 65_536) + sequence;
  if (index - near > 32_768) index -= 65_536;
  if (near - index > 32_768) index += 65_536;
  const keystream = session.counter.keystream(ssrc, index, 1, 1600);
  const headerLength = 12;
  const out = Buffer.alloc(64 + plain.length + 10);
  plain.copy(out, 64);
  for (let i = headerLength; i < plain.length; i += 1) out[64 + i] = out[64 + i]! ^ keystream[i - headerLength]!;
  out.writeUInt32BE(Math.floor(index / 65_536), 64 + plain.length);
  out.write(session.hmac.digest(out, 64, 64 + plain.length + 4), 64 + plain.length, 10, 'latin1');
  return out.subarray(64);
}
