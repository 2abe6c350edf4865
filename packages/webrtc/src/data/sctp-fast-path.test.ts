import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { SCTP } from 'werift-sctp';
import type { SctpInternals } from './mended-sctp.js';
import { receiveData, receiveSack, sendMessage, transmitQuickly, writeQuickly } from './sctp-fast-path.js';
import { DATA, HEADER, isSafePacket, SACK } from './sctp-packet.js';

const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const receive = (sctp: SctpInternals, packet: Buffer): boolean =>
  receiveSack(sctp, packet) || receiveData(sctp, packet);

interface End {
  sctp: SctpInternals;
  raw: SCTP;
  /** Packets that it has sent. */
  packets: Buffer[];
  receive(packet: Buffer): void;
}

/** An established association. */
function association(localTsn: number, streamSeqNum: number): End {
  const packets: Buffer[] = [];
  const send = (packet: Buffer): Promise<void> => {
    packets.push(Buffer.from(packet));
    return Promise.resolve();
  };
  const raw = SCTP.server({ send, close: () => undefined }, 5_000);
  const up = { state: 'connected', isClosed: false, isStopping: false, remotePort: 5_000, cwnd: 1e6 };
  ends.push(() => raw.stop());
  const sctp = Object.assign(raw as unknown as SctpInternals, up, { remoteVerificationTag: 0x8000_0001, localTsn });
  sctp.outboundStreamSeq = { 7: streamSeqNum };
  return { sctp, raw, packets, receive: (packet) => void sctp.handleData(packet) };
}

/** Connects two associations to each other. */
function connect(a: End, b: End): void {
  for (const [end, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const lastReceivedTsn = (other.sctp.localTsn - 1) >>> 0;
    Object.assign(end.sctp, { lastReceivedTsn, remoteVerificationTag: other.sctp.localVerificationTag, cwnd: 1e6 });
    Object.assign(end.sctp, { lastSackedTsn: (end.sctp.localTsn - 1) >>> 0, outboundStreamSeq: {} });
  }
}

const SACK_AND_DATA = [SACK, DATA];

/** Returns the types of a packet's chunks. */
function chunkTypes(packet: Buffer): number[] {
  const types: number[] = [];
  for (let at = HEADER; at < packet.length; at += (packet.readUInt16BE(at + 2) + 3) & ~3) types.push(packet[at]!);
  return types;
}

const kind = fc.record({
  ordered: fc.boolean(),
  maxRetransmits: fc.option(fc.nat(3), { nil: undefined }),
});

test('sends a message in the same packets as werift and leaves the same state', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4_000 }),
      kind,
      fc.constantFrom(1, 0xffff_fffe),
      fc.constantFrom(0, 0xffff),
      async (bytes, { ordered, maxRetransmits }, tsn, sequence) => {
        const message = Buffer.from(Array.from({ length: bytes }, (_, at) => at % 251));
        const limit = maxRetransmits === undefined ? {} : { maxRetransmits };
        const theirs = association(tsn, sequence);
        const ours = association(tsn, sequence);
        writeQuickly(ours.sctp);
        transmitQuickly(ours.sctp, () => undefined);
        transmitQuickly(ours.sctp, () => undefined);
        for (let n = 0; n < 2; n++) {
          await theirs.raw.send(7, 53, message, { ordered, expiry: undefined, maxRetransmits });
          sendMessage(ours.sctp, 7, 53, message, { ordered, ...limit });
          await setImmediate();
        }
        expect(ours.packets).toEqual(theirs.packets);
        expect(ours.sctp.outboundStreamSeq).toEqual(theirs.sctp.outboundStreamSeq);
        expect(ours.sctp.localTsn).toBe(theirs.sctp.localTsn);
        const inFlight = ours.sctp.sentQueue.map((chunk) => ({ ...chunk, sentTime: expect.any(Number) as unknown }));
        expect(theirs.sctp.sentQueue).toMatchObject(inFlight);
      },
    ),
    { numRuns: fuzzRuns(30) },
  );
});

test('sends one packet to a client with a closed window, so that its SACK announces when it reopens', async () => {
  const { sctp, packets } = association(1, 0);
  writeQuickly(sctp);
  transmitQuickly(sctp, () => undefined);
  Object.assign(sctp, { lastSackedTsn: 0, ssthresh: 1e6, peerAdvertisedRwnd: 0 });
  for (let n = 0; n < 2; n++) sendMessage(sctp, 7, 53, Buffer.from('x'), { ordered: true });
  expect(packets.length).toBe(1);
  await sctp.receiveSackChunk({ cumulativeTsn: 1, advertisedRwnd: 1e6, gaps: [], duplicates: [] });
  expect(packets.length).toBe(2);
});

test('expires a message after its lifetime', () => {
  const { sctp } = association(1, 0);
  const before = Date.now() / 1_000;
  sendMessage(sctp, 7, 53, Buffer.from('x'), { ordered: false, maxLifetimeMs: 500 });
  expect(sctp.sentQueue[0]?.expiry).toBeGreaterThanOrEqual(before + 0.5);
  expect(sctp.sentQueue[0]?.expiry).toBeLessThan(before + 5);
});

describe('acknowledging packets out of order', () => {
  const early = fc.tuple(fc.uniqueArray(fc.integer({ min: 2, max: 40 })), fc.array(fc.integer({ min: 0, max: 3 })));

  async function acknowledged(last: number, ahead: readonly number[], again: readonly number[], quick: boolean) {
    const { sctp, packets } = association(1, 0);
    if (quick) writeQuickly(sctp);
    const sackMisOrdered = new Set(ahead.map((n) => (last + n) >>> 0));
    const sackDuplicates = again.map((n) => (last - n) >>> 0);
    Object.assign(sctp, { lastReceivedTsn: last, sackMisOrdered, sackDuplicates, sackNeeded: true });
    await sctp.sendSack();
    expect(sctp.sackNeeded).toBe(false);
    expect(sctp.sackDuplicates).toEqual([]);
    return packets;
  }

  test('acknowledges packets received out of order like werift', async () => {
    await fc.assert(
      fc.asyncProperty(early, async ([ahead, again]) => {
        expect(await acknowledged(500, ahead, again, true)).toEqual(await acknowledged(500, ahead, again, false));
      }),
      { numRuns: fuzzRuns(50) },
    );
  });

  test.each([999_999_980, 0xffff_ffec])('reports gaps in ascending order, even past TSN %i', async (last) => {
    await fc.assert(
      fc.asyncProperty(early, async ([ahead, again]) => {
        const [packet] = (await acknowledged(last, ahead, again, true)) as [Buffer];
        expect(isSafePacket(packet, { established: true, nextTsn: (last + 100) >>> 0 })).toBe(true);
        const named: number[] = [];
        for (let gap = 0; gap < packet.readUInt16BE(24); gap++) {
          const [from, to] = [packet.readUInt16BE(28 + 4 * gap), packet.readUInt16BE(30 + 4 * gap)];
          for (let n = from; n <= to; n++) named.push(n);
        }
        expect(named).toEqual(ahead.toSorted((a, b) => a - b));
      }),
      { numRuns: fuzzRuns(50) },
    );
  });

  test('reports as many gaps as fit into one packet', async () => {
    const ahead = Array.from({ length: 1_000 }, (_, n) => 2 * n + 2);
    const [packet] = (await acknowledged(1, ahead, [0, 0], true)) as [Buffer];
    expect(packet.readUInt16BE(24)).toBe(298);
    expect(packet.readUInt16BE(26)).toBe(2);
    expect(packet.length).toBe(1_228);
    expect(await acknowledged(1, [70_000, 3], [], true)).toEqual(await acknowledged(1, [3], [], true));
  });
});

/** Resolves when both ends have processed everything; each packet arrives shortly after it was sent. */
async function exchange(a: End, b: End): Promise<void> {
  for (let quiet = 0; quiet < 3; quiet++) {
    await setImmediate();
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      for (const packet of from.packets.splice(0)) {
        quiet = 0;
        to.receive(packet);
      }
    }
  }
}

test('exchanges packets with werift in either direction', async () => {
  const message = fc.record({ bytes: fc.integer({ min: 1, max: 3_000 }), kind });
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 10 }), fc.constantFrom(1, 0xffff_fff0), async (messages, tsn) => {
      const [ours, theirs] = [association(tsn, 0), association(tsn, 0)];
      writeQuickly(ours.sctp);
      ours.receive = (packet) => {
        if (!receive(ours.sctp, packet)) void ours.sctp.handleData(packet);
      };
      connect(ours, theirs);
      const [heardByUs, heardByThem]: [number[], number[]] = [[], []];
      ours.raw.onReceive.subscribe((_stream, _protocol, data) => heardByUs.push(data.length));
      theirs.raw.onReceive.subscribe((_stream, _protocol, data) => heardByThem.push(data.length));
      for (const {
        bytes,
        kind: { ordered, maxRetransmits: limit },
      } of messages) {
        const maxRetransmits = limit === undefined ? {} : { maxRetransmits: limit };
        sendMessage(ours.sctp, 7, 53, Buffer.alloc(bytes), { ordered, ...maxRetransmits });
        void theirs.raw.send(7, 53, Buffer.alloc(bytes), { ordered, expiry: undefined, maxRetransmits: limit });
      }
      await exchange(ours, theirs);
      const sent = messages.map(({ bytes }) => bytes);
      expect(heardByUs).toEqual(sent);
      expect(heardByThem).toEqual(sent);
      for (const { sctp } of [ours, theirs]) {
        expect(sctp.sentQueue.length).toBe(0);
        expect(sctp.flightSize).toBe(0);
        expect(sctp.sackNeeded).toBe(false);
      }
    }),
    { numRuns: fuzzRuns(30) },
  );
});

test.each([
  [1, [SACK_AND_DATA]],
  [1_184, [SACK_AND_DATA]],
  [1_185, [[DATA], [SACK]]],
])('acknowledges a message in the packet of its answer of %i bytes, if both fit', async (bytes, chunks) => {
  const [ours, theirs] = [association(1, 0), association(1, 0)];
  writeQuickly(ours.sctp);
  transmitQuickly(ours.sctp, () => undefined);
  connect(ours, theirs);
  ours.raw.onReceive.subscribe(() => sendMessage(ours.sctp, 7, 53, Buffer.alloc(bytes), { ordered: true }));
  const heard: number[] = [];
  theirs.raw.onReceive.subscribe((_stream, _protocol, data) => heard.push(data.length));
  void theirs.raw.send(7, 53, Buffer.alloc(5), { ordered: true, expiry: undefined, maxRetransmits: undefined });
  await setImmediate();
  const [message] = theirs.packets.splice(0);
  expect(receiveData(ours.sctp, message!)).toBe(true);
  expect(ours.packets.map(chunkTypes)).toEqual(chunks);
  expect(Math.max(...ours.packets.map(({ length }) => length))).toBeLessThanOrEqual(1_228);
  await exchange(ours, theirs);
  expect(heard).toEqual([bytes]);
  expect(theirs.sctp.sentQueue).toEqual([]);
});

test('acknowledges packets out of order beside an answer, not in its packet', () => {
  const { sctp, packets } = association(1, 0);
  writeQuickly(sctp);
  transmitQuickly(sctp, () => undefined);
  for (const early of [{ sackMisOrdered: new Set([9]) }, { sackMisOrdered: new Set(), sackDuplicates: [3] }]) {
    Object.assign(sctp, { lastReceivedTsn: 5, sackNeeded: true, ...early });
    sendMessage(sctp, 7, 53, Buffer.from('x'), { ordered: true });
    expect(sctp.sackNeeded).toBe(true);
  }
  expect(packets.map(chunkTypes)).toEqual([[DATA], [DATA]]);
});

test('leaves packets that are damaged, not for us or not simple to werift, unchanged', async () => {
  const [server, client] = [association(1, 0), association(1, 0)];
  connect(server, client);
  await client.raw.send(7, 53, Buffer.from('abc'), { ordered: true, expiry: undefined, maxRetransmits: undefined });
  Object.assign(client.sctp, { lastReceivedTsn: 0, sackNeeded: true, sackImmediate: true });
  await client.sctp.scheduleSack();
  await setImmediate();
  const [data, sack] = client.packets as [Buffer, Buffer];
  expect(data[12]).toBe(0);
  expect(sack[12]).toBe(3);
  for (const packet of [data, sack]) {
    for (let at = 0; at < packet.length; at++) {
      const changed = Buffer.from(packet);
      changed[at]! ^= 1;
      const before = Buffer.from(changed);
      expect(receive(server.sctp, changed)).toBe(false);
      expect(changed).toEqual(before);
    }
    expect(receive(server.sctp, Buffer.concat([packet, packet.subarray(12)]))).toBe(false);
    expect(receive(server.sctp, packet.subarray(0, -1))).toBe(false);
    expect(receive(server.sctp, packet)).toBe(true);
  }
});
