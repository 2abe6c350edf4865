// A node with two media workers loses one, then others that hang or are stuck: their rooms crash, and nothing else
// does.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { decodeServerMessage, encodeServerMessage } from '@bloom/protocol';
import WebSocket from 'ws';
import { Publisher } from '@bloom/participant';
import { WeriftClient } from '../harness/werift-client.js';
import { CheckedApi } from './support/checked-api.js';
import { type Node, startProgram } from './support/program.js';
import { receiveWebhooks, type WebhookReceiver } from './support/webhook-receiver.js';

jest.setTimeout(120_000);

/** Time from a worker's end to its notification, on an idle machine. */
const REPORT_MS = 200;
/**
 * A worker is polled every second and counts as hung after 5 s without an answer, which is noticed at most a second
 * later.
 */
const HANG_REPORT_MS = 1_000 + 5_000 + 1_000 + REPORT_MS;
/** Time for its thread to end before it is abandoned. */
const TERMINATE_MS = 2_000;
const faults = new URL('./support/worker-faults.mjs', import.meta.url);

let node: Node;
let api: CheckedApi;
let webhooks: WebhookReceiver;
let server: Notifications;
const members: WeriftClient[] = [];

beforeEach(async () => {
  webhooks = await receiveWebhooks();
  node = await startProgram({ JF_MEDIA_WORKERS: '2', NODE_OPTIONS: `--import=${faults.href}` });
  api = new CheckedApi(node.url);
  server = await notifications(node.url);
});

afterEach(async () => {
  await Promise.all(members.splice(0).map((member) => member.close()));
  server.socket.terminate();
  await node.dispose();
  await webhooks.close();
});

interface Notifications {
  readonly socket: WebSocket;
  /** Resolves with the time of the room's crash notification, by performance.now(). */
  crashed(roomId: string): Promise<number>;
}

async function notifications(url: string): Promise<Notifications> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket/server/websocket`);
  const crashes = new Map<string, number>();
  let wake: () => void = () => undefined;
  const subscribed = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      const message = decodeServerMessage(data);
      if (message.type === 'subscribeResponse') resolve();
      if (message.type === 'roomCrashed') crashes.set(message.roomId, performance.now());
      wake();
    });
  });
  socket.once('open', () => {
    socket.send(encodeServerMessage({ type: 'authRequest', token: 'development' }));
    socket.send(encodeServerMessage({ type: 'subscribeRequest', eventType: 'serverNotification' }));
  });
  await subscribed;

  return {
    socket,
    crashed: async (roomId) => {
      for (;;) {
        const at = crashes.get(roomId);
        if (at !== undefined) return at;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

async function join(roomId: string, publisher?: Publisher): Promise<WeriftClient> {
  const { token } = await api.peer(roomId);
  const member = await WeriftClient.join(node.url, token, publisher);
  members.push(member);
  return member;
}

/** Creates a room with media flowing from one peer to another. */
async function liveRoom(): Promise<{ roomId: string; publisher: WeriftClient; viewer: WeriftClient }> {
  const roomId = await api.room({ webhookUrl: webhooks.url });
  const source = new Publisher('video', 400);
  const publisher = await join(roomId, source);
  const viewer = await join(roomId);
  source.start(200);
  await flows(viewer);

  return { roomId, publisher, viewer };
}

/** Creates a live room on the other media worker, as soon as that has started. */
async function roomBeside(neighbour: WeriftClient): Promise<Awaited<ReturnType<typeof liveRoom>>> {
  for (;;) {
    const room = await liveRoom();
    if (room.viewer.mediaPort !== neighbour.mediaPort) return room;
    await api.call('DELETE', `/room/${room.roomId}`);
  }
}

async function flows({ received }: WeriftClient): Promise<void> {
  const before = received.length;
  while (received.length < before + 20) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Returns an allowance for a busy machine: twice the time of a request. */
async function slackMs(): Promise<number> {
  const from = performance.now();
  await api.call('GET', '/health');
  return 2 * (performance.now() - from);
}

function missing(received: readonly number[]): number {
  const gaps = received.slice(1).map((number, i) => ((number - (received[i] ?? 0)) & 0xffff) - 1);
  return gaps.reduce((sum, gap) => sum + gap, 0);
}

test('ends only the rooms of a media worker that dies, at once, or hangs or is stuck, within seconds', async () => {
  const doomed = await liveRoom();
  const safe = await liveRoom();
  const slack = await slackMs();

  const from = performance.now();
  process.kill(node.child.pid as number, 'SIGUSR2');
  const told = server.crashed(doomed.roomId).then((at) => at - from);
  await webhooks.until('roomCrashed');
  const byWebhook = performance.now() - from;
  const bySocket = await told;
  expect(await Promise.all([doomed.publisher.closed, doomed.viewer.closed])).toEqual([1011, 1011]);
  const closedAfter = performance.now() - from;
  console.info(
    `RoomCrashed after ${bySocket.toFixed(0)} ms by websocket, ${byWebhook.toFixed(0)} ms by webhook; peers closed after ${closedAfter.toFixed(0)} ms (a request took ${(slack / 2).toFixed(0)} ms)`,
  );
  expect(Math.max(bySocket, byWebhook, closedAfter)).toBeLessThan(REPORT_MS + slack);
  expect((await api.call('GET', `/room/${doomed.roomId}`)).status).toBe(404);

  await flows(safe.viewer);
  expect(missing(safe.viewer.received)).toBe(0);
  expect(safe.viewer.socket.readyState).toBe(WebSocket.OPEN);

  const next = await roomBeside(safe.viewer);
  expect(next.viewer.socket.readyState).toBe(WebSocket.OPEN);

  const hungAt = performance.now();
  process.kill(node.child.pid as number, 'SIGUSR2');
  const took = (await server.crashed(next.roomId)) - hungAt;
  expect(await Promise.all([next.publisher.closed, next.viewer.closed])).toEqual([1011, 1011]);
  console.info(`RoomCrashed ${took.toFixed(0)} ms after its worker began to hang`);
  expect(took).toBeLessThan(HANG_REPORT_MS + slack);
  await flows(safe.viewer);
  expect(missing(safe.viewer.received)).toBe(0);
  expect(webhooks.types().filter((type) => type === 'roomCrashed')).toHaveLength(2);

  const last = await roomBeside(safe.viewer);
  expect(last.viewer.received.length).toBeGreaterThan(0);

  // A thread in native code cannot be terminated, so it is abandoned and does not keep the node from ending.
  const stuckAt = performance.now();
  process.kill(node.child.pid as number, 'SIGUSR2');
  const given = (await server.crashed(last.roomId)) - stuckAt;
  expect(await Promise.all([last.publisher.closed, last.viewer.closed])).toEqual([1011, 1011]);
  console.info(`RoomCrashed ${given.toFixed(0)} ms after its worker got stuck in native code`);
  expect(given).toBeLessThan(HANG_REPORT_MS + TERMINATE_MS + slack);
  await node.says('media.worker_stuck');
  await flows(safe.viewer);
  expect(missing(safe.viewer.received)).toBe(0);

  expect((await roomBeside(safe.viewer)).viewer.received.length).toBeGreaterThan(0);
  const toldAt = performance.now();
  node.child.kill('SIGTERM');
  expect(await node.exited).toBe('SIGKILL');
  expect(node.output()).toContain('node.closed');
  expect(performance.now() - toldAt).toBeLessThan(20_000);
});
