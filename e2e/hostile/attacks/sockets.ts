import { expect } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import { WebSocket } from 'ws';
import { promise } from '../../harness/measurements.js';
import type { Attack, Ground } from '../harness/attack.js';
import { Blameless } from '../harness/blameless.js';
import { Intruder } from '../harness/intruder.js';
import {
  frame,
  many,
  Opcode,
  PEER_PATH,
  pour,
  rawConnection,
  rawWebsocket,
  SERVER_PATH,
} from '../harness/raw-socket.js';

const MIB = 1024 * 1024;
const PONGS_BYTES_PER_S = 40e6;
const FLOOD_MS = 3_000;

const bigFrame = Buffer.concat([frame({ opcode: Opcode.binary, announced: MIB }), Buffer.alloc(MIB - 10, 1)]);
const ping = frame({ opcode: Opcode.ping, payload: Buffer.alloc(125) });
const pings = Buffer.concat(Array.from({ length: 500 }, () => ping));

const FLOOD_PER_S = 700;
const NEWCOMERS = 20;
/** Round trip of a client on another continent. */
const ROUND_TRIP_MS = 200;
/** Within this time, 19 of the 20 are in. */
const JOIN_MS = 2_000;

/** The node may close a silent websocket of this age for a newer one. */
const GRACE_MS = 1_000;
/** Enough for all newcomers on a machine that has processors for both programs; 5 s if it has nothing else to do. */
const JOINING_MS = 15_000;
/** Longest time for which the flood makes up after a pause of this program. */
const MAX_STEP_MS = 50;

/** Opens silent websockets from the honest clients' address. */
function silentWebsockets(host: string): { readonly opened: number; stop(): void } {
  const live = new Set<Socket>();
  let [at, due, opened] = [performance.now(), 0, 0];
  let isStopped = false;
  const timer = setInterval(() => {
    const now = performance.now();
    due += (Math.min(now - at, MAX_STEP_MS) / 1_000) * FLOOD_PER_S;
    at = now;
    for (; opened < due && live.size < 3_000; opened++) {
      void rawWebsocket({ host, from: '127.0.0.1' }).then((socket) => {
        if (isStopped) return void socket.destroy();
        live.add(socket);
        return void socket.resume().once('close', () => live.delete(socket));
      });
    }
  }, 5);

  return {
    get opened() {
      return opened;
    },
    stop() {
      clearInterval(timer);
      isStopped = true;
      for (const socket of live) socket.destroy();
    },
  };
}

/** Joins as a client with slow packets. Resolves with the type of the first answer, or the reason for having none. */
async function slowJoin(ground: Ground): Promise<string> {
  const token = await ground.newToken();
  const socket = new WebSocket(`ws://${ground.host}${PEER_PATH}`);
  ground.after(() => socket.terminate());
  return new Promise((resolve) => {
    socket.once('error', (error) => resolve(error.message));
    socket.once('close', (code) => resolve(`closed with ${code}`));
    socket.once('message', (bytes: Buffer) => resolve(decodePeerMessage(bytes).type));
    socket.once('open', () => {
      setTimeout(() => socket.send(encodePeerMessage({ type: 'authRequest', token })), ROUND_TRIP_MS);
    });
  });
}

export const sockets: readonly Attack[] = [
  {
    title: '150 websockets of a stranger with a frame of 1 MiB each',
    maxGrowthMb: 60,
    async run(ground) {
      const opened = await many(150, () => rawWebsocket({ host: ground.host }));
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      for (const socket of opened) {
        socket.write(bigFrame);
        await pause(5);
      }
      await pause(1_500);
    },
  },
  {
    title: '3,000 websockets of one stranger, while participants come and go',
    async run(ground) {
      const opened = await many(3_000, () => rawWebsocket({ host: ground.host }));
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      const newcomer = await ground.bystander();
      expect(newcomer.closeReason).toBeUndefined();
      const backend = await rawWebsocket({ host: ground.host, path: SERVER_PATH, from: '127.0.0.1' });
      ground.after(() => void backend.destroy());
      expect(backend.readable).toBe(true);
    },
  },
  {
    title: `${FLOOD_PER_S} silent websockets a second behind the address from which ${NEWCOMERS} clients join`,
    async run(ground) {
      const flood = silentWebsockets(ground.host);
      const blameless = new Blameless(ground.pid);
      ground.after(() => {
        flood.stop();
        blameless.stop();
      });
      await pause(2_000);
      const refused: string[] = [];
      const times: number[] = [];
      const until = performance.now() + JOINING_MS;
      for (let at = 0; at < NEWCOMERS && performance.now() < until; at++) {
        const [from, paused] = [performance.now(), blameless.ms];
        const answer = await slowJoin(ground);
        const pausedMs = blameless.ms - paused;
        // While the node or its client waits for a processor, the flood piles up and the client's websocket grows old.
        if (pausedMs > GRACE_MS) continue;
        times.push(performance.now() - from - pausedMs);
        if (answer !== 'authenticated') refused.push(answer);
      }
      expect(refused).toEqual([]);
      process.stderr.write(`  ${times.length} newcomers judged\n`);
      const slowest = times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.95) - 1] ?? 0;
      promise('time to join behind the address of a flood (p95)', slowest, JOIN_MS);
      expect(flood.opened).toBeGreaterThan(1_000);
    },
  },
  {
    title: 'pings of a stranger who reads none of the pongs',
    maxGrowthMb: 60,
    async run(ground) {
      for (const path of [PEER_PATH, SERVER_PATH]) {
        const socket = await rawWebsocket({ host: ground.host, path });
        ground.after(() => void socket.destroy());
        socket.pause();
        await pour(socket, pings, { durationMs: FLOOD_MS, bytesPerSecond: PONGS_BYTES_PER_S });
      }
    },
  },
  {
    title: 'pings of a participant who reads none of the pongs',
    maxGrowthMb: 60,
    async run(ground) {
      const socket = await rawWebsocket({ host: ground.host, from: '127.0.0.1' });
      ground.after(() => void socket.destroy());
      socket.write(
        frame({
          opcode: Opcode.binary,
          payload: encodePeerMessage({ type: 'authRequest', token: await ground.newToken() }),
        }),
      );
      await pause(300);
      socket.pause();
      await pour(socket, pings, { durationMs: FLOOD_MS, bytesPerSecond: PONGS_BYTES_PER_S });
    },
  },
  {
    title: 'incomplete upgrades, frames and closes, and connections that are reset',
    weight: 2,
    async run(ground) {
      const halves = [
        'GET /socket/peer/websocket HTTP/1.1\r\nUpgrade: websocket\r\n',
        `GET ${PEER_PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
        `GET ${PEER_PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 99\r\nSec-WebSocket-Key: x\r\n\r\n`,
        '\x16\x03\x01\x02\x00\x01',
      ];
      const opened = await many(200, async (at) => {
        const socket =
          at % 2 === 0 ? await rawConnection({ host: ground.host }) : await rawWebsocket({ host: ground.host });
        socket.write(
          at % 2 === 0 ? (halves[(at / 2) % halves.length] ?? '') : frame({ opcode: Opcode.close }).subarray(0, 3),
        );
        if (at % 5 === 0) socket.resetAndDestroy();
        return socket;
      });
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      await pause(300);
    },
  },
  {
    title: 'frames that no client may send',
    weight: 2,
    async run(ground) {
      const broken = [
        frame({ opcode: Opcode.binary, announced: 2n ** 62n }),
        frame({ opcode: Opcode.binary, announced: 2n ** 64n - 1n }),
        frame({ opcode: Opcode.binary, announced: 4 * MIB }),
        frame({ opcode: Opcode.binary, payload: Buffer.alloc(10), masked: false }),
        frame({ opcode: Opcode.binary, payload: Buffer.alloc(10), reserved: 7 }),
        frame({ opcode: 11, payload: Buffer.alloc(10) }),
        frame({ opcode: Opcode.ping, payload: Buffer.alloc(200) }),
        frame({ opcode: Opcode.ping, payload: Buffer.alloc(10), final: false }),
        frame({ opcode: Opcode.continuation, payload: Buffer.alloc(10) }),
        frame({ opcode: Opcode.close, payload: Buffer.from([0, 1]) }),
        frame({ opcode: Opcode.text, payload: Buffer.from([0xff, 0xfe]) }),
        Buffer.concat([
          frame({ opcode: Opcode.binary, payload: Buffer.alloc(1), final: false }),
          frame({ opcode: Opcode.binary, payload: Buffer.alloc(1), final: false }),
        ]),
        Buffer.concat([
          frame({ opcode: Opcode.binary, payload: Buffer.alloc(1), final: false }),
          ...Array.from({ length: 20_000 }, () =>
            frame({ opcode: Opcode.continuation, payload: Buffer.alloc(1), final: false }),
          ),
        ]),
      ];
      for (const bytes of broken) {
        const socket = await rawWebsocket({ host: ground.host, from: '127.0.0.1' });
        ground.after(() => void socket.destroy());
        const token = await ground.newToken();
        socket.write(frame({ opcode: Opcode.binary, payload: encodePeerMessage({ type: 'authRequest', token }) }));
        socket.write(bytes);
        const stranger = await rawWebsocket({ host: ground.host });
        ground.after(() => void stranger.destroy());
        stranger.write(bytes);
      }
      await pause(500);
    },
  },
  {
    title: 'one participant who connects 300 times, one after another, and joins each time',
    async run(ground) {
      const token = await ground.newToken();
      for (let round = 0; round < 300; round += 1) {
        await Intruder.joined({ url: ground.url, token }).then(
          (joined) => joined.leave(),
          () => undefined,
        );
      }
    },
  },
  {
    title: 'one token presented by 200 sockets at the same time',
    async run(ground) {
      const token = await ground.newToken();
      const outcomes = await many(
        200,
        () =>
          Intruder.joined({ url: ground.url, token }).then(
            (joined) => joined,
            () => undefined,
          ),
        200,
      );
      const joined = outcomes.filter((intruder) => intruder !== undefined);
      for (const intruder of joined) ground.after(() => intruder.leave());
      expect(joined.filter(({ isOpen }) => isOpen).length).toBeLessThanOrEqual(1);
    },
  },
  {
    title: 'wrong, long, empty and foreign tokens',
    async run(ground) {
      const good = await ground.newToken();
      const tokens = ['', 'x', 'a.b.c', 't'.repeat(900_000), good.slice(0, -1), `${good}x`, good.toUpperCase(), '\0'];
      for (let round = 0; round < 100; round += 1) {
        const token = ground.random.pick(tokens);
        await Intruder.joined({ url: ground.url, token }).then(
          (intruder) => expect(`joined as ${intruder.id}`).toBe('refused'),
          () => undefined,
        );
      }
    },
  },
  {
    title: 'a participant who reads nothing from the room',
    async run(ground) {
      const socket = await rawWebsocket({ host: ground.host, from: '127.0.0.1' });
      ground.after(() => void socket.destroy());
      const token = await ground.newToken();
      const connectEvent = encodePeerMessage({
        type: 'mediaEvent',
        data: '{"type":"connect","data":{"metadata":null}}',
      });
      socket.write(frame({ opcode: Opcode.binary, payload: encodePeerMessage({ type: 'authRequest', token }) }));
      await pause(200);
      socket.write(frame({ opcode: Opcode.binary, payload: connectEvent }));
      await pause(200);
      socket.pause();
      const talker = await ground.intruder();
      for (let round = 0; round < 200 && talker.isOpen; round += 1) {
        talker.send('updateEndpointMetadata', { metadata: `${round}${'m'.repeat(60_000)}` });
        await talker.flushed();
        await pause(10);
      }
    },
  },
];
