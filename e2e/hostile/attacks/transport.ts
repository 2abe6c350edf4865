import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { Attribute, MessageClass, Method, StunWriter, type TestClient } from '@bloom/webrtc/testing';
import { flood } from '../harness/flood.js';
import type { Attack, Ground } from '../harness/attack.js';
import type { Intruder } from '../harness/intruder.js';
import { ssrcOf } from '../harness/offer.js';
import { countMedia, Sender } from '../harness/sender.js';

const HANDSHAKE = 22;
/** Record header, handshake header, version. */
const HELLO_RANDOM_AT = 13 + 12 + 2;
/** Bytes that may come back per byte of DTLS from an admitted client. */
const MAX_AMPLIFICATION = 3;

/** Adds a participant whose transport waits for ICE and DTLS. */
async function negotiated(ground: Ground): Promise<{ intruder: Intruder; wire: TestClient }> {
  const intruder = await ground.intruder();
  await intruder.negotiate({
    lines: [{ kind: 'video', direction: 'sendonly' }],
    trackIds: new Map([[0, intruder.trackId()]]),
  });
  return { intruder, wire: await intruder.wire() };
}

/** Sends one datagram after another. Returns the number of bytes. */
async function shower(wire: TestClient, next: () => Buffer, perGroup = 40): Promise<number> {
  let sent = 0;
  await flood(
    () => {
      const datagram = next();
      sent += datagram.length;
      wire.wire.send(datagram);
    },
    { perGroup },
  );
  return sent;
}

function record(type: number, fragment: Buffer, { epoch = 0, sequence = 0 }): Buffer {
  const header = Buffer.alloc(13);
  header[0] = type;
  header.writeUInt16BE(0xfefd, 1);
  header.writeUInt16BE(epoch, 3);
  header.writeUIntBE(sequence, 5, 6);
  header.writeUInt16BE(fragment.length, 11);
  return Buffer.concat([header, fragment]);
}

/** Returns a handshake fragment of a message of `total` bytes. */
function fragment(
  type: number,
  { total, messageSeq, offset }: { total: number; messageSeq: number; offset: number },
  body: Buffer = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(12);
  header[0] = type;
  header.writeUIntBE(total, 1, 3);
  header.writeUInt16BE(messageSeq, 4);
  header.writeUIntBE(offset, 6, 3);
  header.writeUIntBE(body.length, 9, 3);
  return Buffer.concat([header, body]);
}

/** Returns the first hello of a handshake that stops there, without sending or reading anything. */
function captureHello(client: TestClient): Promise<Buffer> {
  const { wire } = client;
  const send = wire.send;
  wire.onDatagram = () => undefined;
  return new Promise((resolve) => {
    wire.send = (datagram) => {
      // werift repeats it; the repeats are dropped too.
      if ((datagram[0] ?? 0) !== HANDSHAKE) return send(datagram);
      resolve(Buffer.from(datagram));
      if (client.dtls !== undefined) client.dtls.dtls.flight = 255;
      setImmediate(() => (wire.send = send));
    };
    client.handshake().catch(() => undefined);
  });
}

/** Returns a binding request with any credentials. */
function check(username: string, password: string): Buffer {
  return new StunWriter(Method.binding, MessageClass.request, randomBytes(12), 1_024)
    .text(Attribute.username, username)
    .uint32(Attribute.priority, 0x6e7f00ff)
    .bytes(Attribute.iceControlling, randomBytes(8))
    .bytes(Attribute.useCandidate, Buffer.alloc(0))
    .integrity(password)
    .fingerprint()
    .finish();
}

export const transport: readonly Attack[] = [
  {
    title: 'noise on the media port, some of which looks like STUN, DTLS, RTP, RTCP and channels',
    weight: 3,
    async run(ground) {
      const { wire } = await negotiated(ground);
      const starts = [
        [0, 1],
        [1, 1],
        [20],
        [22, 0xfe, 0xfd],
        [23],
        [63],
        [0x40, 0],
        [0x4f, 0xff],
        [0x80, 96],
        [0x90, 200],
        [255],
      ];
      await shower(wire, () =>
        Buffer.concat([Buffer.from(ground.random.pick(starts)), ground.random.bytes(ground.random.below(1_400))]),
      );
    },
  },
  {
    title: 'connectivity checks with wrong passwords, wrong names and the names of others',
    weight: 2,
    async run(ground) {
      const { intruder, wire } = await negotiated(ground);
      const { localUfrag, localPwd, remoteUfrag } = intruder.ice;
      await shower(wire, () =>
        ground.random.pick([
          () => check(`${localUfrag}:${remoteUfrag}`, 'wrong'),
          () => check('nobody:nobody', localPwd),
          () => check(`${'u'.repeat(500)}:x`, localPwd),
          () => check(localUfrag, localPwd),
          () => check('', ''),
          () => check(`${localUfrag}:${remoteUfrag}`, localPwd),
        ])(),
      );
    },
  },
  {
    title: 'handshake fragments that request the flight of the server repeatedly',
    async run(ground) {
      const { intruder, wire } = await negotiated(ground);
      await wire.check(intruder.ice);
      wire.wire.send(await captureHello(wire));
      await pause(300);
      let received = 0;
      wire.wire.onDatagram = (datagram) => {
        received += datagram.length;
      };
      const bomb = record(
        HANDSHAKE,
        Buffer.concat(Array.from({ length: 110 }, () => fragment(1, { total: 1, messageSeq: 0, offset: 1 }))),
        { sequence: 50 },
      );
      const sent = await shower(wire, () => bomb, 2);
      await pause(200);
      expect(received / sent).toBeLessThan(MAX_AMPLIFICATION);
    },
  },
  {
    title: 'endless first hellos, each of which would cost a key pair',
    async run(ground) {
      const { intruder, wire } = await negotiated(ground);
      await wire.check(intruder.ice);
      const captured = await captureHello(wire);
      const hello = (): Buffer => {
        const next = Buffer.from(captured);
        randomBytes(32).copy(next, HELLO_RANDOM_AT);
        return next;
      };
      await shower(wire, hello);
    },
  },
  {
    title: 'handshake fragments that never become complete, and records of every kind',
    weight: 2,
    async run(ground) {
      const { intruder, wire } = await negotiated(ground);
      await wire.check(intruder.ice);
      const { random } = ground;
      await shower(wire, () => {
        const total = random.pick([0, 1, 1_000, 65_535, 0xffffff]);
        const body = random.bytes(random.below(800));
        const type = random.below(25);
        const place = { total, messageSeq: random.below(65_536), offset: random.below(total + 2) };
        const inside = fragment(type, place, body);
        return record(random.pick([20, 21, 22, 22, 22, 23, 24, 99]), inside, {
          epoch: random.below(3),
          sequence: random.below(2 ** 31),
        });
      });
    },
  },
  {
    title: 'a transport whose owner constantly changes ports',
    async run(ground) {
      const { intruder, wire } = await negotiated(ground);
      await wire.check(intruder.ice);
      await wire.handshake();
      for (let round = 0; round < 100; round += 1) {
        await wire.move();
        await wire.check(intruder.ice).catch(() => undefined);
      }
    },
  },
  {
    title: "checks for an own transport from another participant's address, whose media go on",
    async run(ground) {
      const { intruder: victim, wire } = await negotiated(ground);
      await wire.check(victim.ice);
      await wire.handshake();
      const intruder = await ground.intruder();
      await intruder.negotiate({
        lines: [{ kind: 'video', direction: 'sendonly' }],
        trackIds: new Map([[0, intruder.trackId()]]),
      });
      // One socket for both simulates a forged source address.
      const { localUfrag, localPwd, remoteUfrag } = intruder.ice;
      const sender = new Sender(wire, ssrcOf(0));
      const count = countMedia(wire);
      await sender.run(1_500);
      const before = count.packets;
      for (let round = 0; round < 10; round += 1) {
        wire.wire.send(check(`${localUfrag}:${remoteUfrag}`, localPwd));
        await pause(20);
      }
      count.packets = 0;
      await sender.run(1_500);
      expect(before).toBeGreaterThan(0);
      expect(count.packets).toBeGreaterThanOrEqual(before / 3);
    },
  },
];
