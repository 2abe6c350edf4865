// The stream of events in a world with as much of a browser as that takes.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { encodeServerMessage, type ServerMessage } from '@bloom/protocol';
import type { Api } from '../api.js';
import { serverUnreachable } from '../problem.js';
import { Live } from './live.js';

class Socket extends EventTarget {
  binaryType = '';
  isClosed = false;
  constructor() {
    super();
    sockets.push(this);
  }
  send(): void {}
  /** One whose other end is gone closes when the browser has given up on that, minutes later. */
  close(): void {
    this.isClosed = true;
  }
  deliver(message: ServerMessage): void {
    this.dispatchEvent(
      Object.assign(new Event('message'), { data: new Uint8Array(encodeServerMessage(message)).buffer }),
    );
  }
  subscribe(): void {
    this.deliver({ type: 'authenticated' });
    this.deliver({ type: 'subscribeResponse', eventType: 'serverNotification' });
  }
}

const world = globalThis as unknown as Record<string, unknown>;
const NAMES = ['WebSocket', 'document', 'addEventListener', 'removeEventListener'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let sockets: Socket[];
let page: EventTarget & { visibilityState: string };
let network: EventTarget;
let answer: () => Promise<{ rooms: []; unreachable: [] }>;
let live: Live;

beforeEach(() => {
  jest.useFakeTimers();
  sockets = [];
  answer = () => Promise.resolve({ rooms: [], unreachable: [] });
  page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  network = new EventTarget();
  const values = [Socket, page, network.addEventListener.bind(network), network.removeEventListener.bind(network)];
  for (const [i, name] of NAMES.entries()) {
    Object.defineProperty(world, name, { value: values[i], configurable: true });
  }
  const api = { socketUrl: () => 'ws://node/socket/server/websocket', token: 'secret', rooms: () => answer() };
  live = new Live(api as unknown as Api);
  live.open();
  sockets[0]!.subscribe();
});

afterEach(() => {
  live.close();
  jest.useRealTimers();
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(world, name);
    else Object.defineProperty(world, name, descriptor);
  }
});

const soon = (): Promise<void> => jest.advanceTimersByTimeAsync(4_000);

test('a page whose machine slept subscribes anew: the server has given the old connection up, which nobody told it', async () => {
  expect(live.view().connected).toBe(true);
  jest.setSystemTime(Date.now() + 600_000);
  await jest.advanceTimersByTimeAsync(15_000);
  expect([sockets.length, sockets[0]!.isClosed, live.view().connected]).toEqual([2, true, false]);
  sockets[1]!.subscribe();
  expect(live.view().connected).toBe(true);
  sockets[0]!.dispatchEvent(new Event('close'));
  await jest.advanceTimersByTimeAsync(60_000);
  expect([sockets.length, live.view().connected]).toEqual([2, true]);
});

test.each(['online', 'shown'] as const)('a page that is %s again after a while does so at once', async (how) => {
  page.visibilityState = how === 'shown' ? 'hidden' : 'visible';
  jest.setSystemTime(Date.now() + 600_000);
  page.visibilityState = 'visible';
  if (how === 'shown') page.dispatchEvent(new Event('visibilitychange'));
  else network.dispatchEvent(new Event('online'));
  expect(sockets).toHaveLength(2);
});

test('a page that comes and goes keeps its connection', async () => {
  for (const state of ['hidden', 'visible', 'hidden', 'visible']) {
    page.visibilityState = state;
    page.dispatchEvent(new Event('visibilitychange'));
    await jest.advanceTimersByTimeAsync(5_000);
  }
  expect([sockets.length, live.view().connected]).toEqual([1, true]);
});

test('a page whose server is out of reach does not call itself live, and comes back', async () => {
  answer = () => Promise.reject(serverUnreachable('node'));
  await jest.advanceTimersByTimeAsync(15_000);
  expect(live.view()).toMatchObject({ connected: false, problem: { code: 'server-unreachable' } });
  await soon();
  expect(sockets).toHaveLength(2);
  answer = () => Promise.resolve({ rooms: [], unreachable: [] });
  sockets[1]!.subscribe();
  await soon();
  expect(live.view()).toMatchObject({ connected: true, problem: null });
  expect(sockets).toHaveLength(2);
});
