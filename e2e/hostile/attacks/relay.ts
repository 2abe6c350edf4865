import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { createCertificate } from '@bloom/webrtc';
import { Attribute, MessageClass, Method, StunWriter, TestClient } from '@bloom/webrtc/testing';
import { flood } from '../harness/flood.js';
import type { Attack, Ground } from '../harness/attack.js';
import { many, rawConnection } from '../harness/raw-socket.js';

interface RelayOfIntruder {
  readonly user: { username: string; password: string };
  readonly server: { address: string; port: number };
}

/** Returns a participant's relay credentials from `offerData`. */
async function credentials(ground: Ground): Promise<RelayOfIntruder> {
  const intruder = await ground.intruder();
  intruder.custom('renegotiateTracks');
  await intruder.next('offerData');
  const { username = '', password = '', serverPort = 0 } = intruder.relay ?? {};
  return { user: { username, password }, server: { address: '127.0.0.1', port: serverPort } };
}

async function relayClient(ground: Ground, { server }: RelayOfIntruder): Promise<TestClient> {
  const client = await TestClient.open(server);
  ground.after(() => client.close());
  return client;
}

/** Checks that the relay over TCP still serves a participant. */
async function tcpWorks(ground: Ground, { user, server }: RelayOfIntruder): Promise<void> {
  const client = await TestClient.openTcp(ground.relayTcpPort, server, await createCertificate());
  ground.after(() => client.close());
  expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
}

export const relay: readonly Attack[] = [
  {
    title: '4,200 silent connections of one stranger to the TCP port of the relay',
    async run(ground) {
      const participant = await credentials(ground);
      const host = `127.0.0.1:${ground.relayTcpPort}`;
      const opened = await many(4_200, () => rawConnection({ host }), 100);
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      await tcpWorks(ground, participant);
    },
  },
  {
    title: '4,200 silent connections from fifty addresses to the TCP port of the relay',
    async run(ground) {
      const participant = await credentials(ground);
      const host = `127.0.0.1:${ground.relayTcpPort}`;
      const opened = await many(4_200, (at) => rawConnection({ host, from: `127.0.1.${1 + (at % 50)}` }), 100);
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      await tcpWorks(ground, participant);
    },
  },
  {
    title: 'allocations of one participant from 200 ports',
    async run(ground) {
      const participant = await credentials(ground);
      for (let at = 0; at < 200; at += 1) {
        const client = await relayClient(ground, participant);
        await client.allocate(participant.user).catch(() => undefined);
      }
    },
  },
  {
    title: 'permissions and channels for thousands of addresses, and data for all of them',
    async run(ground) {
      const participant = await credentials(ground);
      const client = await relayClient(ground, participant);
      await client.allocate(participant.user);
      const { random } = ground;
      const address = (): { bytes: Uint8Array; port: number } => ({
        bytes: random.bytes(random.pick([4, 4, 4, 16])),
        port: random.below(65_536),
      });
      await flood(
        () => {
          const method = random.pick([Method.createPermission, Method.channelBind, Method.send, Method.refresh]);
          const messageClass = method === Method.send ? MessageClass.indication : MessageClass.request;
          const writer = new StunWriter(method, messageClass, randomBytes(12), 1_024).xorAddress(
            Attribute.xorPeerAddress,
            address(),
          );
          if (method === Method.channelBind) writer.uint32(Attribute.channelNumber, random.below(65_536) << 16);
          if (method === Method.refresh) writer.uint32(Attribute.lifetime, random.pick([1, 600, 2 ** 32 - 1]));
          if (method === Method.send) writer.bytes(Attribute.data, random.bytes(random.below(500)));
          else
            writer
              .text(Attribute.username, participant.user.username)
              .text(Attribute.realm, client.realm)
              .text(Attribute.nonce, client.nonce)
              .integrity(client.key);
          client.wire.send(writer.finish());
        },
        { perGroup: 20, pauseMs: 10 },
      );
      expect((await client.relayRequest(Method.refresh, (w) => w)).method).toBe(Method.refresh);
    },
  },
  {
    title: 'allocate requests of strangers with wrong credentials, as fast as possible',
    weight: 2,
    async run(ground) {
      const participant = await credentials(ground);
      const client = await relayClient(ground, participant);
      await flood(
        () =>
          client.wire.send(
            new StunWriter(Method.allocate, MessageClass.request, randomBytes(12), 1_024)
              .uint32(Attribute.requestedTransport, 17 << 24)
              .text(Attribute.username, ground.random.pick([participant.user.username, 'nobody', 'u'.repeat(400)]))
              .text(Attribute.realm, client.realm)
              .text(Attribute.nonce, ground.random.pick([client.nonce, 'n'.repeat(100)]))
              .integrity(Buffer.from('wrong'))
              .finish(),
          ),
        { perGroup: 40 },
      );
    },
  },
  {
    title: 'malformed, incomplete and 64 KiB frames on the TCP port of the relay',
    async run(ground) {
      const participant = await credentials(ground);
      const host = `127.0.0.1:${ground.relayTcpPort}`;
      const opened = await many(200, async () => {
        const socket = await rawConnection({ host });
        socket.write(
          ground.random.pick([
            ground.random.bytes(1_500),
            Buffer.concat([Buffer.from([0, 3, 0xff, 0xff, 0x21, 0x12, 0xa4, 0x42]), Buffer.alloc(40_000)]),
            Buffer.from([0x40, 0, 0xff, 0xff]),
            Buffer.from('GET / HTTP/1.1\r\n\r\n'),
            Buffer.from([0]),
          ]),
        );
        return socket;
      });
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      await pause(500);
      await tcpWorks(ground, participant);
    },
  },
];
