import { beforeEach, describe, expect, test } from '@jest/globals';
import { addressBytes } from '@bloom/net';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import type { TransportAddress } from '../stun/address.js';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import type { DropReason } from '../drops.js';
import type { Allocation } from './allocation.js';
import { channelPayload, writeChannelHeader } from './channel-data.js';
import type { ClientFlow } from './client-flow.js';
import { NONCE_LIFETIME_MS, Nonces } from './nonces.js';
import { longTermKey, type RelayClient, type RelayOwner } from './allocation.js';
import { RelayFront, type RelayLimits } from './relay-front.js';
import { SourceLimiter } from './source-limiter.js';

const US: TransportAddress = { bytes: Uint8Array.of(203, 0, 113, 5), port: 50_000 };
const ELSEWHERE: TransportAddress = { bytes: Uint8Array.of(10, 0, 0, 1), port: 22 };
const NAME = '1790000000:peer';
const PASSWORD = 'c2VjcmV0';
const START = 1_790_000_000_000;

class Owner implements RelayOwner {
  readonly received: string[] = [];
  gone = 0;
  inUse: Allocation | undefined;

  onRelayed(_allocation: Allocation, payload: Buffer): void {
    this.received.push(payload.toString());
  }
  onAllocationGone(): void {
    this.gone++;
  }
  isInUse(allocation: Allocation): boolean {
    return allocation === this.inUse;
  }
}

/** One client 5-tuple with the client's end of the conversation. */
class Tuple implements RelayClient {
  allocation: Allocation | undefined;
  readonly sent: Buffer[] = [];
  readonly flow: ClientFlow;
  nonce = '';
  realm = '';

  constructor(port: number, address = '198.51.100.7') {
    this.flow = {
      protocol: 'udp',
      address,
      port,
      source: { bytes: addressBytes(address) as Uint8Array, port },
      send: (datagram) => {
        this.sent.push(Buffer.from(datagram));
        return true;
      },
    };
  }
}

let owner: Owner;
let front: RelayFront;
let nowMs: number;
let changed: RelayClient[];
/** Transports by the fragment that checks name. */
const named = new Map<string, Owner>();

function start(limits: Partial<RelayLimits> = {}, limiter = new SourceLimiter({ burst: 100, perSecond: 10 })): void {
  owner = new Owner();
  nowMs = START;
  changed = [];
  front = new RelayFront({
    relayed: US,
    nonces: new Nonces(Buffer.alloc(32, 1)),
    limiter,
    limits,
    ownerOf: (ufrag) => named.get(ufrag),
    onClientChanged: (client) => changed.push(client),
  });
  front.addUser(NAME, PASSWORD, owner);
}
beforeEach(() => start());

let transactions = 0;
type Fill = (writer: StunWriter) => unknown;
interface Signed {
  username?: string;
  password?: string;
  fill?: Fill;
  transactionId?: Buffer;
}

/** Sends a request and returns the response, if there is one. */
function ask(tuple: Tuple, method: Method, { username = NAME, password = PASSWORD, fill, transactionId }: Signed = {}) {
  const id = transactionId ?? Buffer.alloc(12);
  if (transactionId === undefined) id.writeUInt32BE(++transactions);
  const writer = new StunWriter(method, MessageClass.request, id, 512);
  fill?.(writer);
  if (tuple.nonce !== '') {
    writer.text(Attribute.username, username).text(Attribute.realm, tuple.realm).text(Attribute.nonce, tuple.nonce);
    writer.integrity(longTermKey(username, tuple.realm, password));
  }
  return deliver(tuple, writer.finish());
}

function deliver(tuple: Tuple, bytes: Buffer): { answer: StunMessage | undefined; dropped: DropReason | undefined } {
  const before = tuple.sent.length;
  const dropped = front.handle(tuple, StunMessage.parse(bytes) as StunMessage, nowMs);
  const reply = tuple.sent[before];
  return { answer: reply && StunMessage.parse(reply), dropped };
}

const udp: Fill = (writer) => writer.uint32(Attribute.requestedTransport, 17 << 24);
const peer =
  (address: TransportAddress): Fill =>
  (writer) =>
    writer.xorAddress(Attribute.xorPeerAddress, address);
const channel =
  (number: number, address = US): Fill =>
  (writer) =>
    writer.uint32(Attribute.channelNumber, number << 16).xorAddress(Attribute.xorPeerAddress, address);

function challenge(tuple: Tuple): StunMessage | undefined {
  const { answer } = ask(tuple, Method.allocate, { fill: udp });
  tuple.realm = answer?.text(Attribute.realm) ?? '';
  tuple.nonce = answer?.text(Attribute.nonce) ?? '';
  return answer;
}

function allocated(port = 4000): Tuple {
  const tuple = new Tuple(port);
  challenge(tuple);
  expect(ask(tuple, Method.allocate, { fill: udp }).answer?.messageClass).toBe(MessageClass.success);
  return tuple;
}

function indication(data: string, address = US): Buffer {
  return new StunWriter(Method.send, MessageClass.indication, Buffer.alloc(12))
    .xorAddress(Attribute.xorPeerAddress, address)
    .text(Attribute.data, data)
    .finish();
}

function channelFrame(number: number, data: string): Buffer {
  const frame = Buffer.concat([Buffer.alloc(4), Buffer.from(data)]);
  writeChannelHeader(frame, number, data.length);
  return frame;
}

describe('a stranger without credentials', () => {
  test("challenges a stranger's Allocate and reveals nothing else", () => {
    const answer = challenge(new Tuple(1));
    expect(answer?.messageClass).toBe(MessageClass.error);
    expect(answer?.errorCode).toBe(401);
    expect(answer?.has(Attribute.realm) && answer.has(Attribute.nonce)).toBe(true);
    expect(answer?.has(Attribute.software)).toBe(false);
  });

  test.each([Method.refresh, Method.createPermission, Method.channelBind])('leaves method %p unanswered', (method) => {
    expect(ask(new Tuple(1), method, { fill: channel(0x4000) })).toEqual({
      answer: undefined,
      dropped: 'unauthenticated',
    });
  });

  test('challenges a wrong password or an unknown name again and allocates nothing', () => {
    const tuple = new Tuple(1);
    challenge(tuple);
    for (const wrong of [{ password: 'guess' }, { username: '1790000000:other' }]) {
      const { answer, dropped } = ask(tuple, Method.allocate, { fill: udp, ...wrong });
      expect(answer?.errorCode).toBe(401);
      expect(dropped).toBe('unauthenticated');
    }
    expect(tuple.allocation).toBeUndefined();
    expect(front.allocationCount).toBe(0);
  });

  test('limits the answers to a stranger', () => {
    start({}, new SourceLimiter({ burst: 3, perSecond: 1, seed: 1 }));
    const tuple = new Tuple(1);
    for (let i = 0; i < 3; i++) expect(ask(tuple, Method.allocate, { fill: udp }).answer?.errorCode).toBe(401);
    expect(ask(tuple, Method.allocate, { fill: udp })).toEqual({ answer: undefined, dropped: 'rate_limited' });
    expect(ask(new Tuple(1, '198.51.100.8'), Method.allocate, { fill: udp }).answer?.errorCode).toBe(401);
    nowMs += 1_000;
    expect(ask(tuple, Method.allocate, { fill: udp }).answer?.errorCode).toBe(401);
  });

  test('refuses a nonce of another address, and one that has expired', () => {
    const tuple = allocated();
    const thief = new Tuple(9);
    thief.realm = tuple.realm;
    thief.nonce = tuple.nonce;
    expect(ask(thief, Method.allocate, { fill: udp }).answer?.errorCode).toBe(438);

    nowMs += NONCE_LIFETIME_MS;
    const { answer } = ask(tuple, Method.refresh);
    expect(answer?.errorCode).toBe(438);
    tuple.nonce = answer?.text(Attribute.nonce) ?? '';
    expect(ask(tuple, Method.refresh).answer?.messageClass).toBe(MessageClass.success);
  });
});

describe('Allocate', () => {
  test("returns our own address pair, the client's address as seen by us, and the lifetime", () => {
    const tuple = new Tuple(4000);
    challenge(tuple);
    const { answer } = ask(tuple, Method.allocate, { fill: udp });
    expect(answer?.xorAddress(Attribute.xorRelayedAddress)).toEqual(US);
    expect(answer?.xorAddress(Attribute.xorMappedAddress)).toEqual(tuple.flow.source);
    expect(answer?.uint32(Attribute.lifetime)).toBe(600);
    expect(answer?.verifyIntegrity(longTermKey(NAME, tuple.realm, PASSWORD))).toBe(true);
    expect(changed).toEqual([tuple]);
  });

  test.each([
    [1, 600],
    [1_000, 1_000],
    [90_000, 3_600],
  ])('answers a requested lifetime of %p s with %p s', (wanted, granted) => {
    const tuple = new Tuple(4000);
    challenge(tuple);
    const fill: Fill = (writer) => (udp(writer), writer.uint32(Attribute.lifetime, wanted));
    expect(ask(tuple, Method.allocate, { fill }).answer?.uint32(Attribute.lifetime)).toBe(granted);
  });

  test('repeats the response to a retransmission, and answers a second Allocate with a mismatch', () => {
    const tuple = new Tuple(4000);
    challenge(tuple);
    const transactionId = Buffer.alloc(12, 9);
    for (let i = 0; i < 2; i++) {
      const { answer } = ask(tuple, Method.allocate, { fill: udp, transactionId });
      expect(answer?.messageClass).toBe(MessageClass.success);
    }
    expect(front.allocationCount).toBe(1);
    expect(ask(tuple, Method.allocate, { fill: udp }).answer?.errorCode).toBe(437);
  });

  test.each<[string, number, Fill]>([
    ['without a transport', 400, () => undefined],
    ['for TCP', 442, (writer) => writer.uint32(Attribute.requestedTransport, 6 << 24)],
    ['for IPv6', 440, (writer) => (udp(writer), writer.uint32(Attribute.requestedAddressFamily, 2 << 24))],
    ['for a reserved port', 508, (writer) => (udp(writer), writer.bytes(Attribute.reservationToken, Buffer.alloc(8)))],
    ['for a port pair', 508, (writer) => (udp(writer), writer.bytes(Attribute.evenPort, Buffer.of(0x80)))],
    ['with an unknown attribute', 420, (writer) => (udp(writer), writer.uint32(0x7123, 0))],
  ])('refuses an Allocate %s with error %p', (_what, code, fill) => {
    const tuple = new Tuple(4000);
    challenge(tuple);
    expect(ask(tuple, Method.allocate, { fill }).answer?.errorCode).toBe(code);
    expect(front.allocationCount).toBe(0);
  });

  test('frees a user’s longest idle allocation at the limit, and never the one in use', () => {
    start({ allocationsPerUser: 3 });
    const tuples = [1, 2, 3].map((port) => {
      nowMs += 10;
      return allocated(port);
    });
    owner.inUse = tuples[0]?.allocation;
    allocated(4);
    expect(tuples.map((tuple) => tuple.allocation !== undefined)).toEqual([true, false, true]);
    expect(front.allocationCount).toBe(3);
    expect(owner.gone).toBe(1);
  });

  test('refuses an Allocate at the port’s limit', () => {
    start({ allocations: 2 });
    allocated(1);
    allocated(2);
    const tuple = new Tuple(3);
    challenge(tuple);
    expect(ask(tuple, Method.allocate, { fill: udp }).answer?.errorCode).toBe(508);
  });
});

describe('an allocation', () => {
  test('frees an allocation that is not refreshed in time', () => {
    const tuple = allocated();
    nowMs += 599_000;
    front.sweep(nowMs);
    expect(ask(tuple, Method.refresh).answer?.uint32(Attribute.lifetime)).toBe(600);
    nowMs += 599_000;
    front.sweep(nowMs);
    expect(front.allocationCount).toBe(1);
    nowMs += 1_000;
    front.sweep(nowMs);
    expect(front.allocationCount).toBe(0);
    expect(tuple.allocation).toBeUndefined();
    expect(owner.gone).toBe(1);
    expect(ask(tuple, Method.refresh).answer?.errorCode).toBe(437);
  });

  test('keeps an allocation whose refresh waits unread behind a pause of the process', () => {
    const tuple = allocated();
    nowMs += 599_000;
    front.sweep(nowMs);
    nowMs += 40_000;
    front.paused(40_000);
    front.sweep(nowMs);
    expect(front.allocationCount).toBe(1);
    nowMs += 1_000;
    front.sweep(nowMs);
    expect(tuple.allocation).toBeUndefined();
  });

  test('deletes an allocation on a refresh with lifetime 0', () => {
    const tuple = allocated();
    const { answer } = ask(tuple, Method.refresh, { fill: (writer) => writer.uint32(Attribute.lifetime, 0) });
    expect(answer?.messageClass).toBe(MessageClass.success);
    expect(answer?.uint32(Attribute.lifetime)).toBe(0);
    expect(front.allocationCount).toBe(0);
    expect(owner.gone).toBe(1);
  });

  test('keeps an allocation to its own user', () => {
    const tuple = allocated();
    front.addUser('1790000000:other', 'x', new Owner());
    expect(ask(tuple, Method.refresh, { username: '1790000000:other', password: 'x' }).answer?.errorCode).toBe(441);
  });

  test('frees an allocation with its user and with its connection', () => {
    const tuple = allocated(1);
    front.clientGone(allocated(2));
    expect(front.allocationCount).toBe(1);
    front.removeUser(NAME, owner);
    expect(front.allocationCount).toBe(0);
    expect(tuple.allocation).toBeUndefined();
    expect(owner.gone).toBe(2);
    expect(ask(tuple, Method.allocate, { fill: udp }).answer?.errorCode).toBe(401);
  });
});

describe('relaying', () => {
  test('relays to no peer but ourselves', () => {
    const tuple = allocated();
    for (const address of [ELSEWHERE, { ...US, port: 50_001 }, { bytes: new Uint8Array(16), port: US.port }]) {
      expect(ask(tuple, Method.createPermission, { fill: peer(address) }).answer?.errorCode).toBe(403);
      expect(ask(tuple, Method.channelBind, { fill: channel(0x4001, address) }).answer?.errorCode).toBe(403);
    }
    const both: Fill = (writer) => (peer(US)(writer), peer(ELSEWHERE)(writer));
    expect(ask(tuple, Method.createPermission, { fill: both }).answer?.errorCode).toBe(403);
    expect(ask(tuple, Method.createPermission).answer?.errorCode).toBe(400);
    expect(deliver(tuple, indication('x')).dropped).toBe('relay_unbound');
  });

  test('requires an unexpired permission for Send indications', () => {
    const tuple = allocated();
    expect(deliver(tuple, indication('early')).dropped).toBe('relay_unbound');
    expect(ask(tuple, Method.createPermission, { fill: peer(US) }).answer?.messageClass).toBe(MessageClass.success);
    expect(deliver(tuple, indication('hello')).dropped).toBeUndefined();
    expect(deliver(tuple, indication('away', ELSEWHERE)).dropped).toBe('relay_unbound');
    nowMs += 300_000;
    expect(deliver(tuple, indication('late')).dropped).toBe('relay_unbound');
    expect(owner.received).toEqual(['hello']);
  });

  test('relays both ways through a channel until the binding expires', () => {
    const tuple = allocated();
    expect(front.handleChannelData(tuple, channelFrame(0x4001, 'early'), nowMs)).toBe('relay_unbound');
    expect(ask(tuple, Method.channelBind, { fill: channel(0x4001) }).answer?.messageClass).toBe(MessageClass.success);
    expect(front.handleChannelData(tuple, channelFrame(0x4001, 'hello'), nowMs)).toBeUndefined();
    expect(front.handleChannelData(tuple, channelFrame(0x4002, 'other'), nowMs)).toBe('relay_unbound');
    expect(owner.received).toEqual(['hello']);

    const allocation = tuple.allocation as Allocation;
    expect(allocation.headroom).toBe(4);
    front.sendTo(allocation, Buffer.from('....answer'));
    expect(tuple.sent.at(-1)).toEqual(channelFrame(0x4001, 'answer'));

    nowMs += 400_000;
    ask(tuple, Method.refresh);
    nowMs += 200_000;
    front.sweep(nowMs);
    expect(front.handleChannelData(tuple, channelFrame(0x4001, 'late'), nowMs)).toBe('relay_unbound');
  });

  test('gives the two transports of one client the allocations whose checks name them', () => {
    const second = new Owner();
    front.addUser(NAME, PASSWORD, second);
    named.set('first', owner).set('second', second).set('stranger', new Owner());
    const check = (ufrag: string): Buffer =>
      new StunWriter(Method.binding, MessageClass.request, Buffer.alloc(12), 100)
        .text(Attribute.username, `${ufrag}:client`)
        .finish();
    const [one, other] = [allocated(1), allocated(2)];
    for (const tuple of [one, other]) ask(tuple, Method.channelBind, { fill: channel(0x4001) });
    const send = (tuple: Tuple, data: Buffer): unknown =>
      front.handleChannelData(
        tuple,
        Buffer.concat([Buffer.from([0x40, 1, data.length >> 8, data.length & 255]), data]),
        nowMs,
      );
    send(other, check('second'));
    send(one, check('first'));
    for (const ufrag of ['stranger', 'nobody']) send(other, check(ufrag));
    send(one, Buffer.from('media of the first'));
    send(other, Buffer.from('media of the second'));
    expect(owner.received.at(-1)).toBe('media of the first');
    expect([owner.received.length, second.received.length]).toEqual([2, 4]);
    expect(second.received.at(-1)).toBe('media of the second');

    front.removeUser(NAME, second);
    expect(front.allocationCount).toBe(1);
    expect(one.allocation).toBeDefined();
    front.removeUser(NAME, owner);
    expect(front.allocationCount).toBe(0);
  });

  test('answers with Data indications without a channel', () => {
    const tuple = allocated();
    ask(tuple, Method.createPermission, { fill: peer(US) });
    const allocation = tuple.allocation as Allocation;
    expect(allocation.headroom).toBe(0);
    front.sendTo(allocation, Buffer.from('answer'));
    const data = StunMessage.parse(tuple.sent.at(-1) as Buffer);
    expect(data?.method).toBe(Method.data);
    expect(data?.messageClass).toBe(MessageClass.indication);
    expect(data?.text(Attribute.data)).toBe('answer');
    expect(data?.xorAddress(Attribute.xorPeerAddress)).toEqual(US);
  });

  test.each([0x3fff, 0x5000, 0x7fff, 0])('refuses channel number %p', (number) => {
    expect(ask(allocated(), Method.channelBind, { fill: channel(number) }).answer?.errorCode).toBe(400);
  });

  test('refuses a second channel to the same peer, but refreshes the first', () => {
    const tuple = allocated();
    ask(tuple, Method.channelBind, { fill: channel(0x4001) });
    expect(ask(tuple, Method.channelBind, { fill: channel(0x4002) }).answer?.errorCode).toBe(400);
    expect(ask(tuple, Method.channelBind, { fill: channel(0x4001) }).answer?.messageClass).toBe(MessageClass.success);
  });
});

describe('garbage', () => {
  test('garbage attributes in authenticated requests never throw, and never relay elsewhere', () => {
    const tuple = allocated();
    const attribute = fc.tuple(
      fc.constantFrom(...Object.values(Attribute).filter((type) => type !== Attribute.messageIntegrity)),
      fc.uint8Array({ maxLength: 24 }),
    );
    const request = fc.tuple(fc.constantFrom(3, 4, 6, 8, 9), fc.array(attribute, { maxLength: 6 }), fc.boolean());
    fc.assert(
      fc.property(request, ([method, attributes, isRequest]) => {
        const messageClass = isRequest ? MessageClass.request : MessageClass.indication;
        const writer = new StunWriter(method as Method, messageClass, Buffer.alloc(12), 1024);
        writer.text(Attribute.username, NAME).text(Attribute.realm, tuple.realm).text(Attribute.nonce, tuple.nonce);
        for (const [type, value] of attributes) if (type !== Attribute.fingerprint) writer.bytes(type, value);
        const bytes = writer.integrity(longTermKey(NAME, tuple.realm, PASSWORD)).finish();
        const message = StunMessage.parse(bytes);
        if (message) front.handle(tuple, message, nowMs);
        expect(front.allocationCount).toBeLessThanOrEqual(1);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('garbage ChannelData never throws, and accepted data has the announced length', () => {
    const tuple = allocated();
    ask(tuple, Method.channelBind, { fill: channel(0x4001) });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, ours) => {
        const frame = Buffer.from(bytes);
        if (ours && frame.length >= 2) frame.writeUInt16BE(0x4001);
        front.handleChannelData(tuple, frame, nowMs);
        const payload = channelPayload(frame);
        if (payload) expect(payload.length).toBe(frame.readUInt16BE(2));
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
