import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { PacketStore } from '../packet-store.js';
import { RtpView } from '../rtp-view.js';
import { RedReader, RedWriter } from './red.js';

const OPUS = 111;
const RED = 63;
const FRAME = 960;

/** Returns an Opus packet of 20 ms (RFC 6716 table 2, configuration 31) that ends with this byte. */
function sound(mark: number, bytes = 4): Buffer {
  const packet = Buffer.alloc(bytes, mark);
  packet[0] = 31 << 3;
  return packet;
}

/** Returns an RTP packet; with `level`, it has a header extension. */
function rtp(payload: Buffer, { payloadType = RED, sequence = 10, timestamp = 48_000, level = false } = {}): Buffer {
  const header = Buffer.from('806f000000000000000000aa', 'hex');
  if (level) header[0] = 0x90;
  header[1] = 0x80 | payloadType;
  header.writeUInt16BE(sequence, 2);
  header.writeUInt32BE(timestamp, 4);
  const extension = level ? Buffer.from('bede000110050000', 'hex') : Buffer.alloc(0);
  return Buffer.concat([header, extension, payload]);
}

function blockHeader(offset: number, length: number, payloadType = OPUS): Buffer {
  const fields = (offset << 10) | length;
  return Buffer.from([0x80 | payloadType, fields >>> 16, (fields >>> 8) & 0xff, fields & 0xff]);
}

function viewOf(packet: Buffer): RtpView {
  const view = new RtpView();
  if (!view.parse(packet)) throw new Error('no RTP');
  return view;
}

function payloadOf({ buffer, payloadStart, payloadEnd }: RtpView): Buffer {
  return Buffer.from(buffer.subarray(payloadStart, payloadEnd));
}

describe('reading redundancy', () => {
  const payload = Buffer.concat([
    blockHeader(2 * FRAME, 4),
    blockHeader(FRAME, 5),
    Buffer.from([OPUS]),
    sound(1),
    sound(2, 5),
    sound(3, 6),
  ]);

  test('restores the earlier packets of a packet, then the packet itself with its header', () => {
    const view = viewOf(rtp(payload, { level: true }));
    const reader = new RedReader();
    expect(reader.read(view, OPUS)).toBe(true);
    expect(reader.count).toBe(2);

    expect(reader.restore(0, 65_536 + 8, view)).toBe(true);
    expect(view).toMatchObject({ payloadType: OPUS, sequence: 8, timestamp: 48_000 - 2 * FRAME, ssrc: 0xaa });
    expect(payloadOf(view)).toEqual(sound(1));
    expect(reader.restore(1, 65_536 + 9, view)).toBe(true);
    expect(view).toMatchObject({ sequence: 9, timestamp: 48_000 - FRAME, marker: false });
    expect(payloadOf(view)).toEqual(sound(2, 5));

    expect(reader.unwrap(view)).toBe(true);
    expect(view).toMatchObject({ payloadType: OPUS, sequence: 10, timestamp: 48_000, ssrc: 0xaa, marker: true });
    expect(view.audioLevel(1)).toBe(5);
    expect(payloadOf(view)).toEqual(sound(3, 6));
  });

  test('does not restore a block that ends before the next begins', () => {
    const paused = Buffer.concat([blockHeader(2 * FRAME, 4), Buffer.from([OPUS]), sound(1), sound(3)]);
    const view = viewOf(rtp(paused));
    const reader = new RedReader();
    expect(reader.read(view, OPUS)).toBe(true);
    expect(reader.restore(0, 9, view)).toBe(false);
  });

  test('skips blocks of another codec', () => {
    const other = Buffer.concat([blockHeader(FRAME, 4, 0), Buffer.from([OPUS]), sound(1), sound(3)]);
    const view = viewOf(rtp(other));
    const reader = new RedReader();
    expect(reader.read(view, OPUS)).toBe(true);
    expect(reader.restore(0, 9, view)).toBe(false);
    expect(reader.unwrap(view)).toBe(true);
    expect(payloadOf(view)).toEqual(sound(3));
  });

  test.each([
    ['is empty', Buffer.alloc(0)],
    ['ends within a header', blockHeader(FRAME, 4).subarray(0, 3)],
    ['has headers without an end', Buffer.concat(Array.from({ length: 200 }, (_, i) => blockHeader(9000 - i, 0)))],
    ['has a block that is longer than the packet', Buffer.concat([blockHeader(FRAME, 9), Buffer.from([OPUS, 1, 2])])],
    ['has blocks only', Buffer.concat([blockHeader(FRAME, 2), Buffer.from([OPUS, 1, 2])])],
    ['has a block of its own time', Buffer.concat([blockHeader(0, 1), Buffer.from([OPUS, 1, 2])])],
    [
      'has a block that is newer than the next',
      Buffer.concat([blockHeader(FRAME, 1), blockHeader(2 * FRAME, 1), Buffer.from([OPUS, 1, 2, 3])]),
    ],
    ['is in another codec itself', Buffer.from([0, 1, 2])],
  ])('refuses a payload that %s', (_what, malformed) => {
    expect(new RedReader().read(viewOf(rtp(malformed)), OPUS)).toBe(false);
  });

  test('reads any payload without an error, and only the bytes within it', () => {
    const view = new RtpView();
    const reader = new RedReader();
    const chain = fc.array(fc.tuple(fc.nat(0x3fff), fc.nat(20)), { maxLength: 12 });
    const likely = fc.tuple(chain, fc.uint8Array({ maxLength: 64 })).map(([blocks, rest]) => {
      const headers = blocks.toSorted(([a], [b]) => b - a).map(([offset, length]) => blockHeader(offset, length));
      return Buffer.concat([...headers, Buffer.from([OPUS]), rest]);
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 64 }), likely), (bytes) => {
        const packet = rtp(Buffer.from(bytes));
        view.parse(packet);
        if (!reader.read(view, OPUS)) return;
        for (let i = 0; i < reader.count; i++) {
          if (reader.restore(i, 10 + i, view)) expect(view.payloadLength).toBeLessThan(bytes.length);
        }
        expect(reader.unwrap(view)).toBe(true);
        expect(view.payloadLength).toBeGreaterThan(0);
        expect(view.payloadLength).toBeLessThan(bytes.length);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});

describe('writing redundancy', () => {
  /** Stores packets of 20 ms, `at` in frames, and returns the last one. */
  function stored(store: PacketStore, frames: readonly { at: number; payload: Buffer }[]): RtpView {
    let packet: Buffer = Buffer.alloc(0);
    for (const [i, { at, payload }] of frames.entries()) {
      packet = rtp(payload, { payloadType: OPUS, sequence: 100 + i, timestamp: at * FRAME, level: true });
      store.put(100 + i, packet, 0, packet.length, 0);
    }
    return viewOf(packet);
  }

  function write(frames: readonly { at: number; payload: Buffer }[], distance: number): Buffer | undefined {
    const store = new PacketStore({ packets: 16, bytes: 16_384 });
    const view = stored(store, frames);
    const writer = new RedWriter({ red: RED, blocks: OPUS });
    const found = writer.find(store, view, 99 + frames.length, distance, 0);
    if (found === 0) return undefined;
    const target = Buffer.alloc(2000);
    const length = writer.write(store, target, 0, 12);
    expect(target[1]).toBe(RED);
    return Buffer.concat([target.subarray(12, 12 + length), payloadOf(view)]);
  }

  const frames = [1, 2, 3].map((mark) => ({ at: mark, payload: sound(mark, 3 + mark) }));

  test.each([
    [1, [sound(2, 5)]],
    [2, [sound(1, 4), sound(2, 5)]],
    [9, [sound(1, 4), sound(2, 5)]],
  ])('repeats the packets at distance %i, as its reader finds them', (distance, expected) => {
    const view = viewOf(rtp(write(frames, distance)!, { timestamp: 3 * FRAME }));
    const reader = new RedReader();
    expect(reader.read(view, OPUS)).toBe(true);
    const read = Array.from({ length: reader.count }, (_, i) => (reader.restore(i, i, view) ? payloadOf(view) : null));
    expect(read).toEqual(expected);
    reader.unwrap(view);
    expect(payloadOf(view)).toEqual(sound(3, 6));
  });

  test('repeats nothing from before a pause', () => {
    const [first, second] = [frames[0]!, frames[1]!];
    expect(write([first, { ...second, at: 5 }], 2)).toBeUndefined();
    const behind = write([first, { ...second, at: 5 }, { at: 6, payload: sound(3) }], 2)!;
    expect(behind.length).toBe(4 + 1 + second.payload.length + 4);
  });

  test('repeats nothing that is missing, or for which the packet has no room', () => {
    expect(write([frames[0]!], 2)).toBeUndefined();
    expect(
      write(
        [
          { at: 1, payload: sound(1, 900) },
          { at: 2, payload: sound(2, 900) },
        ],
        2,
      ),
    ).toBeUndefined();
    const large = [1, 2, 3].map((at) => ({ at, payload: sound(at, 400) }));
    expect(write(large, 2)!.length).toBe(4 + 1 + 800);
  });
});
