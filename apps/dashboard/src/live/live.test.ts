// The rooms and events of a real node, with only the browser features that this needs.
import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { BloomClient } from '@bloom/server-sdk';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { Live } from './live.js';

const WAIT_MS = 15_000;
const WAKE_UP_TICK_MS = 2_000;
const REFRESH_MS = 15_000;

const world = globalThis as unknown as Record<string, unknown>;
const NAMES = ['document', 'location', 'navigator', 'addEventListener', 'removeEventListener'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let node: TestNode;
let page: EventTarget & { visibilityState: string };
let network: EventTarget;
let live: Live;

beforeAll(async () => {
  node = await startTestNode();
});
afterAll(() => node.dispose());

beforeEach(() => {
  // The sockets are real, and so is all time except for the intervals of the page.
  jest.useFakeTimers({
    doNotFake: [
      'setTimeout',
      'clearTimeout',
      'setImmediate',
      'clearImmediate',
      'nextTick',
      'queueMicrotask',
      'performance',
      'hrtime',
    ],
  });
  page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  network = new EventTarget();
  const values = [
    page,
    new URL(node.url),
    {},
    network.addEventListener.bind(network),
    network.removeEventListener.bind(network),
  ];
  for (const [i, name] of NAMES.entries()) {
    Object.defineProperty(world, name, { value: values[i], configurable: true });
  }
  live = new Live(new BloomClient({ url: node.url, token: node.settings.http.apiToken }));
});

afterEach(async () => {
  live.close();
  jest.useRealTimers();
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(world, name);
    else Object.defineProperty(world, name, descriptor);
  }
  const { body } = await node.request('GET', '/room');
  for (const { id } of body.data) await node.request('DELETE', `/room/${id}`);
});

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + WAIT_MS; performance.now() < end; ) {
    if (isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`timed out waiting until ${what}: ${JSON.stringify(live.view())}`);
}

const connected = (): Promise<void> => until('the page is live', () => live.view().connected);
const ids = (): string[] | undefined => live.view().rooms?.map(({ id }) => id);
/** Counts how often the page loses or abandons its connection from now on. */
function countLosses(): () => number {
  let losses = 0;
  let last = live.view().connected;
  live.subscribe(() => {
    if (last && !live.view().connected) losses += 1;
    last = live.view().connected;
  });
  return () => losses;
}

test('lists rooms by id as they come and go', async () => {
  await node.createRoom({ roomId: 'kitchen' });
  live.open();
  await connected();
  expect(ids()).toEqual(['kitchen']);
  await node.createRoom({ roomId: 'attic' });
  await until('the attic is listed', () => ids()?.join() === 'attic,kitchen');
  await node.request('DELETE', '/room/kitchen');
  await until('the kitchen is gone', () => ids()?.join() === 'attic');
});

test('gives an event text fields and a unique number', async () => {
  live.open();
  await connected();
  await node.createRoom({ roomId: 'kitchen' });
  const peer = await node.addPeer('kitchen');
  const client = await node.peerSocket();
  await client.authenticate(peer.token);
  client.send({ type: 'connect', data: { metadata: { name: 'Ann' } } });
  const types = ['roomCreated', 'peerAdded', 'peerConnected', 'peerMetadataUpdated'];
  await until('four events are there', () => live.view().events.length === types.length);
  const { events } = live.view();
  expect(events.map(({ type }) => type)).toEqual(types);
  expect(new Set(events.map(({ number }) => number)).size).toBe(types.length);
  expect(events[0]?.fields).toEqual({ roomId: 'kitchen' });
  expect(events.at(-1)?.fields).toEqual({ roomId: 'kitchen', peerId: peer.id, metadata: '{"name":"Ann"}' });
  live.clearEvents();
  expect(live.view().events).toEqual([]);
});

test('sends one request after a burst of events, however many rooms it concerns', async () => {
  live.open();
  await connected();
  const names = Array.from({ length: 20 }, (_, i) => `room-${String(i).padStart(2, '0')}`);
  await Promise.all(names.map((roomId) => node.createRoom({ roomId })));
  await until('all rooms are listed', () => ids()?.length === names.length);
  expect(ids()).toEqual(names);
});

test('requests a room that the page has touched even without an event about it', async () => {
  await node.createRoom({ roomId: 'kitchen' });
  live.open();
  await connected();
  await node.request('PATCH', '/room/kitchen', { maxPeers: 3 });
  live.touch('kitchen');
  await until('the limit is known', () => live.view().rooms?.[0]?.config.maxPeers === 3);
});

test('reports a wrong token, and shows nothing as live', async () => {
  live = new Live(new BloomClient({ url: node.url, token: 'wrong' }));
  live.open();
  await until('the token is refused', () => live.view().problem?.code === 'wrong-token');
  expect(live.view().connected).toBe(false);
  expect(live.view().rooms).toBeNull();
});

test('reconnects after its machine slept, since the old connection may have closed unnoticed', async () => {
  live.open();
  await connected();
  const losses = countLosses();
  jest.setSystemTime(Date.now() + 600_000);
  jest.advanceTimersByTime(WAKE_UP_TICK_MS);
  expect(live.view().connected).toBe(false);
  await connected();
  expect(losses()).toBe(1);
});

test('waits until a hidden page is shown, because slowed timers look like sleep', async () => {
  live.open();
  await connected();
  const losses = countLosses();
  page.visibilityState = 'hidden';
  for (let minute = 0; minute < 3; minute += 1) {
    jest.setSystemTime(Date.now() + 60_000);
    jest.advanceTimersByTime(WAKE_UP_TICK_MS);
  }
  expect(losses()).toBe(0);
  page.visibilityState = 'visible';
  page.dispatchEvent(new Event('visibilitychange'));
  expect(losses()).toBe(1);
  await connected();
});

test('reconnects when its network is back', async () => {
  live.open();
  await connected();
  network.dispatchEvent(new Event('online'));
  expect(live.view().connected).toBe(false);
  await connected();
});

test('keeps its connection when the page is hidden and shown', async () => {
  live.open();
  await connected();
  const losses = countLosses();
  for (const state of ['hidden', 'visible', 'hidden', 'visible']) {
    page.visibilityState = state;
    page.dispatchEvent(new Event('visibilitychange'));
  }
  expect(losses()).toBe(0);
});

test('notices when a server stops and when it returns', async () => {
  const env = { JF_PORT: new URL(node.url).port };
  await node.createRoom({ roomId: 'lost' });
  live.open();
  await connected();
  await node.dispose();
  await until('the server is missed', () => live.view().problem?.code === 'server-unreachable');
  expect(live.view().connected).toBe(false);
  node = await startTestNode(env);
  await connected();
  expect(live.view().problem).toBeNull();
  expect(ids()).toEqual([]);
});

test('detects a server that stops answering without a closed connection', async () => {
  live = new Live(new BloomClient({ url: node.url, token: node.settings.http.apiToken, timeoutMs: 1_000 }));
  live.open();
  await connected();
  const asked = jest.spyOn(globalThis, 'fetch').mockImplementation(
    (_url, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
      }),
  );
  jest.advanceTimersByTime(REFRESH_MS);
  await until('the silence is noticed', () => !live.view().connected);
  expect(live.view().problem?.code).toBe('server-unreachable');
  asked.mockRestore();
  await connected();
});
