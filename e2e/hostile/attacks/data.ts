import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { crc32c } from 'werift-sctp/lib/common/src/crc.js';
import { decodeServerMessage } from '@bloom/protocol';
import { DataClient } from '@bloom/webrtc/testing';
import { apiToken } from '../../harness/bloom-node.js';
import { flood } from '../harness/flood.js';
import type { Attack, Ground } from '../harness/attack.js';
import { subscribe } from '../harness/backend.js';
import { slowReader } from '../harness/slow-reader.js';

const FLOOD_MS = 2_000;
const BACKEND_BYTES_PER_S = 512 * 1024;
const [DATA, SACK, HEARTBEAT, ERROR, RECONFIG, FORWARD_TSN] = [0, 3, 4, 9, 130, 192];

/** A participant with data channels that forges packets beside those of its honest association. */
interface Forger {
  readonly client: DataClient;
  /** Sends chunks in one packet with the right tag and checksum. */
  forge(...chunks: readonly Buffer[]): Promise<void>;
  /** The last TSN that the server sent. */
  readonly lastTsn: number;
}

function uint16(...words: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * words.length);
  for (const [at, word] of words.entries()) bytes.writeUInt16BE(word & 0xffff, 2 * at);
  return bytes;
}

function uint32(...words: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * words.length);
  for (const [at, word] of words.entries()) bytes.writeUInt32BE(word >>> 0, 4 * at);
  return bytes;
}

function chunk(type: number, flags: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(type, flags), uint16(4 + body.length), body, Buffer.alloc(-body.length & 3)]);
}

function withDataChannels(sdp: string): string {
  const own = /^a=(ice-ufrag|ice-pwd|fingerprint|setup):.*\r$/gm;
  const transport = [...new Set(sdp.match(own))].map((line) => line.trimEnd());
  const lines = ['m=application 9 UDP/DTLS/SCTP webrtc-datachannel', 'c=IN IP4 0.0.0.0', ...transport, 'a=mid:9'];
  return `${sdp.replace('BUNDLE 0', 'BUNDLE 0 9')}${[...lines, 'a=sctp-port:5000', 'a=max-message-size:262144', ''].join('\r\n')}`;
}

/** Adds a participant with an association and one open channel. */
async function associated(ground: Ground): Promise<Forger> {
  const intruder = await ground.intruder();
  await intruder.negotiate({
    lines: [{ kind: 'video', direction: 'sendonly' }],
    trackIds: new Map([[0, intruder.trackId()]]),
    edit: withDataChannels,
  });
  const { dtls } = await intruder.connectMedia();
  if (dtls === undefined) throw new Error('no DTLS');
  const client = new DataClient((packet) => void dtls.send(packet));
  ground.after(() => client.end());
  dtls.onData.subscribe((packet) => client.receive(packet));
  await client.connect();
  client.open(0, { label: 'chat' });
  await client.until(() => client.confirmed.has(0));
  const sctp = client.sctp as unknown as { remoteVerificationTag: number; lastReceivedTsn: number };
  return {
    client,
    get lastTsn() {
      return sctp.lastReceivedTsn;
    },
    async forge(...chunks) {
      const packet = Buffer.concat([uint16(5_000, 5_000), uint32(sctp.remoteVerificationTag, 0), ...chunks]);
      packet.writeUInt32LE(crc32c(packet), 8);
      await dtls.send(packet);
    },
  };
}

const FLOOD = { lastsMs: FLOOD_MS, perGroup: 20, pauseMs: 2 };

/** Parameters of a chunk; the length is correct unless given. */
const parameter = (type: number, body: Buffer, length = 4 + body.length): Buffer =>
  Buffer.concat([uint16(type, length), body, Buffer.alloc(-body.length & 3)]);

export const data: readonly Attack[] = [
  {
    title: 'SCTP parameters without a length',
    async run(ground) {
      const { forge } = await associated(ground);
      for (const type of [HEARTBEAT, 5, ERROR, RECONFIG, 6]) {
        await forge(chunk(type, 0, parameter(5, Buffer.alloc(0), 0)));
      }
      await forge(chunk(1, 0, Buffer.alloc(16), parameter(5, Buffer.alloc(0), 0)));
      await pause(1_000);
    },
  },
  {
    title: 'hundreds of acknowledgements, resets and skipped messages in each SCTP packet',
    weight: 2,
    async run(ground) {
      const forger = await associated(ground);
      const { random, lastTsn } = { random: ground.random, lastTsn: forger.lastTsn };
      const many = (count: number, make: () => Buffer): Buffer[] => Array.from({ length: count }, make);
      const step = (): Promise<void> =>
        random.pick([
          () =>
            forger.forge(
              ...many(200, () => chunk(SACK, 0, uint32(lastTsn, 1e6), uint16(1, 0), uint16(1, random.below(65_536)))),
            ),
          () => forger.forge(...many(200, () => chunk(FORWARD_TSN, 0, uint32(random.below(2 ** 31))))),
          () => forger.forge(...many(200, () => chunk(HEARTBEAT, 0, parameter(1, random.bytes(8))))),
          () => forger.forge(chunk(RECONFIG, 0, ...many(300, () => parameter(17, random.bytes(8))))),
          () => {
            const streams = uint16(...Array.from({ length: 500 }, () => random.below(1_024)));
            return forger.forge(
              chunk(RECONFIG, 0, parameter(13, Buffer.concat([uint32(random.below(1e6), 1, 1), streams]))),
            );
          },
        ])();
      await flood(step, FLOOD);
    },
  },
  {
    title: 'messages that open channels, in every packet and on every stream',
    async run(ground) {
      const forger = await associated(ground);
      let tsn = (forger.client.sctp as unknown as { localTsn: number }).localTsn;
      await flood(() => {
        const opens = Array.from({ length: 30 }, () => {
          const open = Buffer.concat([Buffer.of(3, 0), uint16(0), uint32(0), uint16(1, 0), ground.random.bytes(1)]);
          const stream = ground.random.below(1_024);
          return chunk(DATA, 3, uint32(tsn++), uint16(stream, 0), uint32(50), open);
        });
        return forger.forge(...opens);
      }, FLOOD);
    },
  },
  {
    title: 'a flood of messages to a backend on a slow link',
    async run(ground) {
      await ground.api('PATCH', `/room/${ground.room}`, { dataEvents: ['chat'] });
      const line = await slowReader(ground.host, BACKEND_BYTES_PER_S);
      const backend = await subscribe(`http://${line.host}`, apiToken, ['serverNotification', 'data']);
      ground.after(async () => {
        backend.terminate();
        await line.close();
        await ground.api('PATCH', `/room/${ground.room}`, { dataEvents: null });
      });
      const told: string[] = [];
      backend.on('message', (bytes: Buffer) => told.push(decodeServerMessage(bytes).type));
      const clients = await Promise.all([1, 2, 3, 4].map(async () => (await associated(ground)).client));
      const message = Buffer.concat([Buffer.of(0), Buffer.alloc(16 * 1024, 'x')]);
      for (let round = 0; round < FLOOD_MS / 20; round += 1) {
        for (const client of clients) for (let n = 0; n < 2; n += 1) client.send(0, message);
        await pause(20);
      }
      const created = await ground.api('POST', '/room', { roomId: 'after-the-flood' });
      expect(created.status).toBe(201);
      await ground.api('DELETE', '/room/after-the-flood');
      // Up to 1 MiB in the node, and the contents of the system's buffers, are ahead of them on this link.
      const heardBy = performance.now() + 60_000;
      while (!told.includes('roomDeleted') && performance.now() < heardBy) await pause(100);
      expect(backend.readyState).toEqual(backend.OPEN);
      expect(told.includes('dataMessage')).toBe(true);
      expect(told.filter((type) => type.startsWith('room'))).toEqual(['roomCreated', 'roomDeleted']);
    },
  },
  {
    title: 'random SCTP packets with the right checksum',
    weight: 2,
    async run(ground) {
      const { random } = ground;
      const { forge } = await associated(ground);
      const types = [0, 0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 14, 130, 192, 255];
      await flood(() => {
        const chunks = Array.from({ length: 1 + random.below(6) }, () =>
          chunk(random.pick(types), random.below(8), random.bytes(random.below(80))),
        );
        return forge(...chunks);
      }, FLOOD);
    },
  },
];
