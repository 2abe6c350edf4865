import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import type { DtlsCertificate } from '../dtls/certificate.js';
import { Nonces } from '../relay/nonces.js';
import { RELAY_REALM } from '../relay/replies.js';
import { longTermKey } from '../relay/allocation.js';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import { credentials, serverCertificate, user } from '../testing/port-fixture.js';
import type { PeerTransport, PeerTransportHandlers } from './api.js';
import { MediaPortCore } from './media-port-core.js';

let certificate: DtlsCertificate;
let core: MediaPortCore;
let nowMs: number;
let sent: Buffer[];
let events: string[];
let transport: PeerTransport;
let kept: number[];
let kernelTakes: boolean;
const CLIENT = ['198.51.100.7', 4000] as const;

beforeAll(async () => {
  certificate = await serverCertificate();
});

beforeEach(() => {
  nowMs = 1_790_000_000_000;
  sent = [];
  events = [];
  kept = [];
  kernelTakes = true;
  core = new MediaPortCore({
    advertised: { bytes: Uint8Array.of(203, 0, 113, 5), port: 50_000 },
    certificate,
    nonces: new Nonces(),
    clock: () => nowMs,
    sockets: {
      send: (datagram) => {
        sent.push(Buffer.from(datagram));
        return kernelTakes;
      },
    },
    onSlotKept: (slot) => kept.push(slot),
  });
  transport = core.openTransport({
    id: 'peer',
    relay: user,
    handlers: {
      onRtp: () => events.push('rtp'),
      onRtcp: () => events.push('rtcp'),
      onIceConnected: (generation) => events.push(`ice ${generation}`),
      onDtlsConnected: () => events.push('dtls'),
      onFailed: (reason) => events.push(reason),
      onSilent: () => events.push('silent'),
      onActive: () => events.push('active'),
    },
  });
  transport.negotiate({ generation: 1, ice: credentials(1), fingerprint: certificate.fingerprint });
});

function ignoring(onIceConnected: () => void): PeerTransportHandlers {
  const ignore = (): void => undefined;
  return { onRtp: ignore, onRtcp: ignore, onIceConnected, onDtlsConnected: ignore, onFailed: ignore, onSilent: ignore };
}

function check(nominate = true): Buffer {
  const ice = credentials(1);
  const writer = new StunWriter(Method.binding, MessageClass.request, Buffer.alloc(12, 5));
  writer.text(Attribute.username, `${ice.localUfrag}:${ice.remoteUfrag}`);
  if (nominate) writer.bytes(Attribute.useCandidate, Buffer.alloc(0));
  return writer.integrity(ice.localPwd).fingerprint().finish();
}

function pass(seconds: number): void {
  for (let i = 0; i < seconds; i++) {
    nowMs += 1_000;
    core.tick();
  }
}

/** Stops the process for a while. */
function pause(seconds: number): void {
  nowMs += seconds * 1_000;
  core.tick();
}

describe('silence and consent', () => {
  test('reports a client silent once after 30 s without checks, and active with the next check', () => {
    core.receive(check(), ...CLIENT);
    pass(29);
    expect(events).toEqual(['ice 1']);
    pass(60);
    expect(events).toEqual(['ice 1', 'silent']);
    expect(transport.pathState.ice).toBe('silent');
    core.receive(check(), ...CLIENT);
    expect(events).toEqual(['ice 1', 'silent', 'active']);
    pass(31);
    expect(events.at(-1)).toBe('silent');
  });

  test('sends nothing to a silent client until it checks again, whether or not it nominates', () => {
    core.receive(check(), ...CLIENT);
    pass(29);
    expect(transport.pathState.remotePort).toBe(CLIENT[1]);
    pass(2);
    expect(transport.pathState.remotePort).toBeUndefined();
    core.receive(check(false), ...CLIENT);
    expect(transport.pathState.remotePort).toBe(CLIENT[1]);
  });

  test('keeps the path of a client that no longer checks but still sends', () => {
    core.receive(check(), ...CLIENT);
    for (let second = 0; second < 40; second++) {
      core.receive(Buffer.concat([Buffer.of(0x80, 201), Buffer.alloc(30)]), ...CLIENT);
      pass(1);
    }
    expect(events.at(-1)).toBe('silent');
    expect(transport.pathState.remotePort).toBe(CLIENT[1]);
    pass(31);
    expect(transport.pathState.remotePort).toBeUndefined();
  });

  test('reports a client that never connects silent 30 s after the answer', () => {
    pass(31);
    expect(events).toEqual(['silent']);
  });

  test('a pause of the process neither marks a client as silent nor extends its time limit', () => {
    core.receive(check(), ...CLIENT);
    pass(10);
    pause(40);
    expect(events).toEqual(['ice 1']);
    pass(19);
    expect(events).toEqual(['ice 1']);
    pass(1);
    expect(events).toEqual(['ice 1', 'silent']);
  });

  test('forgets sources that are no longer checked, except the nominated one', () => {
    core.receive(check(false), '198.51.100.7', 4001);
    core.receive(check(), ...CLIENT);
    const rtp = Buffer.concat([Buffer.of(0x80, 96), Buffer.alloc(40)]);
    core.receive(Buffer.from(rtp), '198.51.100.7', 4001);
    expect(core.stats().dropped.no_keys).toBe(1);
    pass(70);
    core.receive(Buffer.from(rtp), '198.51.100.7', 4001);
    core.receive(Buffer.from(rtp), ...CLIENT);
    expect(core.stats().dropped).toMatchObject({ no_keys: 2, unknown_source: 1 });
  });
});

describe('relayed connections', () => {
  test('ends a connection that names a user but allocates nothing within 10 s', () => {
    let closed = 0;
    const replies: Buffer[] = [];
    const stream = core.attachStream({
      address: '198.51.100.9',
      port: 4000,
      secure: true,
      send: (frame) => replies.push(frame) > 0,
      allocated: () => undefined,
      close: () => closed++,
    });
    const writer = new StunWriter(Method.allocate, MessageClass.request, Buffer.alloc(12), 512);
    writer.uint32(Attribute.requestedTransport, 17 << 24).text(Attribute.username, user.username);
    stream.receive(writer.text(Attribute.realm, RELAY_REALM).text(Attribute.nonce, 'x').integrity('guess').finish());
    expect(StunMessage.parse(replies[0] as Buffer)?.errorCode).toBe(401);
    pass(5);
    pause(40);
    pass(4);
    expect(closed).toBe(0);
    pass(1);
    expect(closed).toBe(1);
  });
});

describe('the sink of a transport', () => {
  test('drops without a path, sends on the nominated one, and reports slots the kernel keeps', () => {
    expect(transport.sink.send(Buffer.from('early'), 1)).toBe(true);
    expect(sent).toEqual([]);
    core.receive(check(), ...CLIENT);
    sent.length = 0;
    expect(transport.sink.send(Buffer.from('sealed'), 2)).toBe(true);
    kernelTakes = false;
    expect(transport.sink.send(Buffer.from('queued'), 3)).toBe(false);
    expect(sent.map(String)).toEqual(['sealed', 'queued']);
    expect(kept).toEqual([3]);
    expect(transport.counters).toMatchObject({ packetsSent: 2, bytesSent: 12 });
  });
});

describe('an IPv6 port', () => {
  test('announces its own IP family and refuses the other', () => {
    const advertised = { bytes: Uint8Array.of(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), port: 50_000 };
    const v6 = new MediaPortCore({
      advertised,
      certificate,
      nonces: new Nonces(),
      clock: () => nowMs,
      sockets: { send: (datagram) => sent.push(Buffer.from(datagram)) > 0 },
      onSlotKept: () => undefined,
    });
    const opened = v6.openTransport({ id: 'v6', relay: user, handlers: ignoring(() => undefined) });
    const allocate = (family?: number): StunMessage => {
      const nonce = sent.length === 0 ? undefined : StunMessage.parse(sent[0] as Buffer)?.text(Attribute.nonce);
      const writer = new StunWriter(Method.allocate, MessageClass.request, Buffer.alloc(12, sent.length), 512);
      writer.uint32(Attribute.requestedTransport, 17 << 24);
      if (family !== undefined) writer.uint32(Attribute.requestedAddressFamily, family << 24);
      if (nonce !== undefined) {
        writer.text(Attribute.username, user.username).text(Attribute.realm, RELAY_REALM).text(Attribute.nonce, nonce);
        writer.integrity(longTermKey(user.username, RELAY_REALM, user.password));
      }
      v6.receive(writer.finish(), '2001:db8::9', 4000);
      return StunMessage.parse(sent.at(-1) as Buffer) as StunMessage;
    };
    expect(allocate().errorCode).toBe(401);
    expect(allocate(1).errorCode).toBe(440);
    const answer = allocate(2);
    expect(answer.xorAddress(Attribute.xorRelayedAddress)).toEqual(advertised);
    expect(answer.xorAddress(Attribute.xorMappedAddress)?.bytes.length).toBe(16);
    opened.close();
    expect(v6.stats().allocations).toBe(0);
  });
});

describe('bounds', () => {
  test('limits the number of sources per transport and never evicts the nominated one', () => {
    core.receive(check(), ...CLIENT);
    for (let port = 5_000; port < 5_100; port++) {
      nowMs += 1;
      core.receive(check(false), '198.51.100.7', port);
    }
    const rtp = Buffer.concat([Buffer.of(0x80, 96), Buffer.alloc(40)]);
    for (let port = 5_000; port < 5_100; port++) core.receive(Buffer.from(rtp), '198.51.100.7', port);
    core.receive(Buffer.from(rtp), ...CLIENT);
    expect(core.stats().dropped).toMatchObject({ no_keys: 16, unknown_source: 85 });
  });

  test('gives an address that another transport has taken over to that transport alone', () => {
    core.receive(check(), ...CLIENT);
    const ice = credentials(9);
    const other = core.openTransport({
      id: 'other',
      relay: { username: 'other', password: 'x' },
      handlers: ignoring(() => events.push('other')),
    });
    other.negotiate({ generation: 1, ice, fingerprint: certificate.fingerprint });
    const theirs = new StunWriter(Method.binding, MessageClass.request, Buffer.alloc(12))
      .text(Attribute.username, `${ice.localUfrag}:${ice.remoteUfrag}`)
      .bytes(Attribute.useCandidate, Buffer.alloc(0))
      .integrity(ice.localPwd)
      .finish();
    core.receive(theirs, ...CLIENT);
    expect(events).toEqual(['ice 1', 'other']);
    expect(transport.pathState.remotePort).toBeUndefined();
    expect(other.pathState.remotePort).toBe(CLIENT[1]);
  });
});

describe('floods', () => {
  test("a client that floods the port with DTLS delays no other client's handshake", () => {
    const turns: (() => void)[] = [];
    const busy = new MediaPortCore({
      advertised: { bytes: Uint8Array.of(203, 0, 113, 5), port: 50_000 },
      certificate,
      nonces: new Nonces(),
      clock: () => nowMs,
      sockets: { send: () => true },
      onSlotKept: () => undefined,
      nextTurn: (run) => turns.push(run),
    });
    const join = (number: number): readonly [string, number] => {
      const ice = credentials(number);
      const client = ['198.51.100.7', 4000 + number] as const;
      busy
        .openTransport({
          id: String(number),
          relay: { username: String(number), password: 'x' },
          handlers: ignoring(() => undefined),
        })
        .negotiate({ generation: 1, ice, fingerprint: certificate.fingerprint });
      const writer = new StunWriter(Method.binding, MessageClass.request, Buffer.alloc(12))
        .text(Attribute.username, `${ice.localUfrag}:${ice.remoteUfrag}`)
        .bytes(Attribute.useCandidate, Buffer.alloc(0));
      busy.receive(writer.integrity(ice.localPwd).finish(), ...client);
      return client;
    };
    const [flooder, other] = [join(1), join(2)];
    const record = Buffer.from('17fefd0000000000000000000100', 'hex');
    for (let i = 0; i < 2_000; i++) busy.receive(Buffer.from(record), ...flooder);
    const { rate_limited: before } = busy.stats().dropped;
    busy.receive(Buffer.from(record), ...other);
    expect(busy.stats().dropped.rate_limited).toBe(before);
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn();
    busy.receive(Buffer.from(record), ...flooder);
    expect(busy.stats().dropped.rate_limited).toBe(before);
  });
});

describe('strangers', () => {
  test("answers a stranger's Allocate and nothing else", () => {
    const stranger = (method: Method, messageClass: MessageClass): Buffer =>
      new StunWriter(method, messageClass, Buffer.alloc(12))
        .text(Attribute.username, 'srv1:x')
        .integrity('guess')
        .finish();
    for (const method of Object.values(Method)) {
      for (const messageClass of Object.values(MessageClass)) {
        if (method !== Method.allocate) core.receive(stranger(method, messageClass), '192.0.2.66', 1);
      }
    }
    expect(sent).toEqual([]);
    core.receive(stranger(Method.allocate, MessageClass.request), '192.0.2.66', 1);
    expect(sent.map((reply) => StunMessage.parse(reply)?.errorCode)).toEqual([401]);
  });

  test('15,000 datagrams of garbage change nothing and draw only challenges', () => {
    core.receive(check(), ...CLIENT);
    sent.length = 0;
    const first = fc.constantFrom(0, 1, 2, 3, 20, 22, 23, 63, 64, 79, 128, 129, 191, 255);
    const stun = fc.tuple(fc.nat(0x3fff), fc.uint8Array({ maxLength: 60 })).map(([type, body]) => {
      const bytes = Buffer.alloc(20 + (body.length & ~3));
      bytes.writeUInt16BE(type, 0);
      bytes.writeUInt16BE(bytes.length - 20, 2);
      bytes.writeUInt32BE(0x2112a442, 4);
      bytes.set(body.subarray(0, body.length & ~3), 20);
      return bytes;
    });
    const datagram = fc.oneof(
      fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
      fc.tuple(first, fc.uint8Array({ maxLength: 80 })).map(([byte, rest]) => Buffer.concat([Buffer.of(byte), rest])),
      stun,
    );
    fc.assert(
      fc.property(datagram, fc.boolean(), (bytes, fromClient) => {
        nowMs += 1;
        if (fromClient) core.receive(bytes, ...CLIENT);
        else core.receive(bytes, '192.0.2.66', 1);
      }),
      { numRuns: fuzzRuns(15_000) },
    );
    expect(events).toEqual(['ice 1']);
    expect(core.stats().dropped.handler_error).toBe(0);
    expect(core.stats()).toMatchObject({ allocations: 0, transports: 1 });
    for (const reply of sent) expect(StunMessage.parse(reply)?.errorCode).toBe(401);
    core.receive(check(), ...CLIENT);
    expect(StunMessage.parse(sent.at(-1) as Buffer)?.messageClass).toBe(MessageClass.success);
  });
});
