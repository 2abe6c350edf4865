import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { crc32c } from 'werift-sctp/lib/common/src/crc.js';
import { DataClient } from '../testing/data-client.js';
import { DataLink } from './data-link.js';
import { isSafePacket } from './sctp-packet.js';

/** A link fed with random packets that carry the right tag and checksum; without those werift reads nothing. */
class Link {
  readonly #client = new DataClient((packet) => setImmediate(() => this.#link.receive(Buffer.from(packet))));
  readonly #link = new DataLink({
    send: (packet) => {
      const copy = Buffer.from(packet);
      setImmediate(() => this.#client.receive(copy));
    },
    inTurn: (step) => {
      step();
      return true;
    },
    onUp: () => undefined,
    onOpened: () => undefined,
    onMessage: () => undefined,
    onClosed: () => undefined,
    onDropped: () => undefined,
    onDown: (cause) => void this.downs.push(cause),
  });
  readonly downs: string[] = [];

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  receive(packet: Buffer): void {
    const { remoteVerificationTag } = this.#client.sctp as unknown as { remoteVerificationTag: number };
    packet.writeUInt32BE(packet[12] === 1 ? 0 : remoteVerificationTag, 4);
    packet.writeUInt32LE(0, 8);
    packet.writeUInt32LE(crc32c(packet), 8);
    this.#link.receive(packet);
  }

  /** TSN of the client's next chunk. */
  get nextTsn(): number {
    return (this.#client.sctp as unknown as { localTsn: number }).localTsn;
  }

  /** Closes a channel, as the router does beyond its limit. */
  forget(stream: number): void {
    this.#link.close(stream);
  }

  end(): void {
    this.#link.end();
    void this.#client.end();
  }
}

function packet(...chunks: readonly (readonly number[])[]): Buffer {
  return Buffer.from([...new Uint8Array(12), ...chunks.flat()]);
}

/** Returns a SACK of TSN 0 with these gaps, as offsets. */
function sack(...gaps: readonly (readonly [number, number])[]): number[] {
  const words = gaps.flat().flatMap((word) => [word >> 8, word & 255]);
  return [3, 0, 0, 16 + words.length, ...new Uint8Array(8), 0, gaps.length, 0, 0, ...words];
}

const data = (stream: number): number[] => [
  0,
  3,
  0,
  17,
  0,
  0,
  0,
  1,
  stream >> 8,
  stream & 255,
  0,
  0,
  0,
  0,
  0,
  51,
  65,
  0,
  0,
  0,
];
const init = [1, 0, 0, 20, ...new Uint8Array(16)];
const parameter = (length: number): number[] => [
  0,
  5,
  0,
  length,
  ...new Uint8Array((Math.max(length, 4) + 3) & ~3).slice(4),
];
const chunk = (type: number, ...body: readonly (readonly number[])[]): number[] => {
  const bytes = body.flat();
  return [type, 0, (4 + bytes.length) >> 8, (4 + bytes.length) & 255, ...bytes];
};
const beginOfInit = [...new Uint8Array(16)];
const HEARTBEAT = 4;
const RECONFIG = 130;
const FORWARD_TSN = 192;

test.each([
  ['a short packet', Buffer.alloc(15), false],
  ['a chunk longer than the packet', packet([0, 3, 0, 40]), false],
  ['a chunk of length zero', packet([6, 0, 0, 0]), false],
  ['a chunk shorter than its header', packet([6, 0, 0, 3]), false],
  ['a DATA chunk', packet(data(1_023)), true],
  ['a DATA chunk on a stream that does not exist', packet(data(1_024)), false],
  ['a DATA chunk without data', packet([0, 3, 0, 16, ...new Uint8Array(12)]), false],
  ['ordered gaps', packet(sack([2, 2], [4, 4_096])), true],
  ['a gap that is too wide', packet(sack([2, 4_097])), false],
  ['overlapping gaps', packet(sack([2, 9], [9, 12])), false],
  ['a gap that ends before it begins', packet(sack([5, 4])), false],
  ['INIT', packet(init), true],
  ['INIT together with another chunk', packet(init, data(1)), false],
  ['64 one-byte messages', packet(...Array.from({ length: 64 }, () => data(1))), true],
  ['65 one-byte messages', packet(...Array.from({ length: 65 }, () => data(1))), false],
  ['a DATA chunk of 2 KiB', packet([0, 3, 8, 0, ...new Uint8Array(2_044)]), false],
  ['two SACKs', packet(sack(), sack()), false],
  ['a SACK and a DATA chunk', packet(sack(), data(1)), true],
  ['a SACK of a TSN that was never sent', packet(chunk(3, [0, 0, 19, 136], [0, 0, 0, 0], [0, 0, 0, 0])), false],
  ['a SACK of the last TSN sent', packet(chunk(3, [0, 0, 19, 135], [0, 0, 0, 0], [0, 0, 0, 0])), true],
  [
    'a SACK with more bytes than gaps',
    packet(chunk(3, [0, 0, 19, 135], [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1])),
    false,
  ],
  ['a message skipped on the last stream', packet(chunk(FORWARD_TSN, [0, 0, 0, 1], [3, 255, 0, 0])), true],
  ['a message skipped on a stream that does not exist', packet(chunk(FORWARD_TSN, [0, 0, 0, 1], [4, 0, 0, 0])), false],
  ['two HEARTBEATs', packet(chunk(HEARTBEAT, parameter(8)), chunk(HEARTBEAT, parameter(8))), false],
  ['two FORWARD TSNs', packet(chunk(FORWARD_TSN, [0, 0, 0, 1]), chunk(FORWARD_TSN, [0, 0, 0, 2])), false],
  ['two requests', packet(chunk(RECONFIG, parameter(16), parameter(16))), true],
  ['three requests', packet(chunk(RECONFIG, parameter(16), parameter(16), parameter(16))), false],
  ['a parameter of length zero in INIT', packet(chunk(1, beginOfInit, parameter(0))), false],
  ['a parameter of three bytes', packet(chunk(1, beginOfInit, parameter(3))), false],
  ['a parameter', packet(chunk(1, beginOfInit, parameter(6))), true],
  ['a parameter longer than its chunk', packet(chunk(HEARTBEAT, [0, 5, 0, 9, 0, 0, 0, 0])), false],
  ['33 parameters', packet(chunk(HEARTBEAT, ...Array.from({ length: 33 }, () => parameter(4)))), false],
  ...[2, HEARTBEAT, 5, 6, 9, RECONFIG].map(
    (type) =>
      [
        `a parameter of length zero in chunk ${type}`,
        packet(chunk(type, ...(type === 2 ? [beginOfInit] : []), parameter(0))),
        false,
      ] as const,
  ),
])('decides whether %s is safe', (_, bytes, safe) => {
  expect(isSafePacket(bytes, { established: false, nextTsn: 5_000 })).toBe(safe);
});

test('refuses INIT on an established association', () => {
  expect(isSafePacket(packet(init), { established: true, nextTsn: 1 })).toBe(false);
});

test('neither throws nor hangs on any packet, whether or not the link is established', async () => {
  const types = fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 130, 192, 200);
  const small = fc.constantFrom(0, 1, 2, 3, 4, 5, 8, 13, 16, 17, 255);
  const body = fc.array(fc.oneof(fc.nat(255), small), { maxLength: 60 });
  const anyChunk = fc
    .tuple(types, fc.nat(7), body)
    .map(([type, flags, bytes]) => [type, flags, 0, 4 + bytes.length, ...bytes, ...new Uint8Array(-bytes.length & 3)]);
  const chunks = fc.array(anyChunk, { minLength: 1, maxLength: 5 }).map((all) => packet(...all));
  const noise = fc.uint8Array({ minLength: 12, maxLength: 80 }).map((bytes) => Buffer.from(bytes));
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(fc.oneof(chunks, noise), { maxLength: 8 }),
      async (established, packets) => {
        const pair = new Link();
        if (established) await pair.connect();
        for (const each of packets) pair.receive(each);
        // Give werift a turn for its deferred work.
        await nextTurn();
        pair.end();
      },
    ),
    { numRuns: fuzzRuns(200) },
  );
});

test('ends the association when a client opens channels without end and acknowledges nothing', async () => {
  const link = new Link();
  await link.connect();
  const { nextTsn } = link;
  const open = [3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 65];
  const opening = (at: number): number[] => {
    const head = Buffer.alloc(16);
    head.writeUInt16BE(0x03, 0);
    head.writeUInt16BE(16 + open.length, 2);
    head.writeUInt32BE((nextTsn + at) >>> 0, 4);
    head.writeUInt16BE((2 * at) % 1_024, 8);
    head.writeUInt16BE(Math.floor(at / 512), 10);
    head.writeUInt32BE(50, 12);
    return [...head, ...open, 0, 0, 0];
  };
  for (let at = 0; at < 4_000; at++) {
    link.receive(packet(opening(at)));
    link.forget((2 * at) % 1_024);
  }
  expect(link.downs).toEqual(['limit']);
  link.end();
});
