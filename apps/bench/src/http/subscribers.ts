import { once } from 'node:events';
import { encodePeerMessage } from '@bloom/protocol';
import WebSocket from 'ws';
import { cpuMicros } from '../sfu/process.js';
import { Client, inParallel } from './client.js';
import { EventStream } from './event-stream.js';
import { address, type BenchNode } from './node.js';
import { latencyText, type Result, summary } from './result.js';

/** Enough rooms to keep each peer below 32 small updates a second, above which a room merges them. */
const ROOMS = 50;
/** Number of subscribers whose events are also timed. */
const TIMED = 5;
/** Time allowed for the last events to arrive. */
const GRACE_MS = 15_000;
const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

export interface SubscriberLoad {
  subscribers: number;
  /** Events per second over all rooms. */
  rate: number;
  seconds: number;
}

/** Measures peers that change their metadata. Each change is an event of its room, delivered to every subscriber. */
export async function measureSubscribers(node: BenchNode, load: SubscriberLoad): Promise<Result[]> {
  const { subscribers, rate, seconds } = load;
  const client = new Client(node.port);
  const peers: WebSocket[] = [];
  const streams: EventStream[] = [];
  try {
    await inParallel(ROOMS, 4, async (index) => {
      await client.json(201, 'POST /room', { roomId: `bench-${index}` });
      peers[index] = await joinPeer(client, node.port, `bench-${index}`);
    });
    await inParallel(subscribers, 50, async (index) => {
      streams.push(await EventStream.open({ port: node.port, rooms: ROOMS, timed: index < TIMED }));
    });

    const total = rate * seconds;
    const cpuBefore = cpuMicros(node.pid);
    const startedAt = performance.now();
    for (let sent = 0; sent < total; ) {
      const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1_000) * rate) + 1);
      for (; sent < due; sent += 1) {
        const metadata = [Math.floor(sent / ROOMS), Number(performance.now().toFixed(2))];
        say(peers[sent % ROOMS], { type: 'updateEndpointMetadata', data: { metadata } });
      }
      await sleep(1);
    }
    const missing = (): number => streams.reduce((sum, { tally }) => sum + total - tally.received, 0);
    const deadline = performance.now() + GRACE_MS;
    while (missing() > 0 && performance.now() < deadline) await sleep(20);
    const elapsedMs = performance.now() - startedAt;
    const cores = (cpuMicros(node.pid) - cpuBefore) / (elapsedMs * 1_000);
    // Wait until duplicates would have arrived.
    await sleep(200);

    const disordered = streams.reduce((sum, { tally }) => sum + tally.twiceOrLate, 0);
    const closed = streams.filter(({ ended }) => ended !== undefined).length;
    const lost = missing();
    const times = summary(streams.flatMap(({ tally }) => tally.latencies));
    return [
      {
        what: `${subscribers} subscribers, ${rate} events/s for ${seconds} s`,
        values: { ...times, expected: total * subscribers, lost, disordered, closed, cores },
        measured: `${total * subscribers - lost} of ${total * subscribers} delivered, ${disordered} twice or late, ${closed} closed; ${latencyText(times)}, ${cores.toFixed(2)} cores`,
        target: 'all, none twice, in order per room',
        met: lost === 0 && disordered === 0 && closed === 0,
      },
    ];
  } finally {
    for (const stream of streams) stream.close();
    for (const peer of peers) peer?.terminate();
    await inParallel(ROOMS, 4, async (index) => {
      await client.call('DELETE', `/room/bench-${index}`);
    });
    client.close();
  }
}

async function joinPeer(client: Client, port: number, roomId: string): Promise<WebSocket> {
  const { data } = await client.json(201, `POST /room/${roomId}/peer`, { type: 'webrtc', options: {} });
  const socket = new WebSocket(`ws://${address}:${port}/socket/peer/websocket`);
  await once(socket, 'open');
  socket.send(encodePeerMessage({ type: 'authRequest', token: data.token }));
  await once(socket, 'message');
  say(socket, { type: 'connect', data: { metadata: null } });
  await once(socket, 'message');
  return socket;
}

function say(socket: WebSocket | undefined, event: object): void {
  socket?.send(encodePeerMessage({ type: 'mediaEvent', data: JSON.stringify(event) }));
}
