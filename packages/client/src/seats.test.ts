// A backend that provides seats again and again, with only the browser features that this needs.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { encodePeerMessage } from '@bloom/protocol';
import type { ReconnectOptions } from './backoff.js';
import { RoomClient } from './client.js';
import type { ConnectOptions } from './client-types.js';

class FakeSocket extends EventTarget {
  static readonly OPEN = 1;
  readyState = 0;
  constructor() {
    super();
    sockets.push(this);
  }
  send(): void {}
  close(): void {
    this.readyState = 3;
  }
  deliver(message: Parameters<typeof encodePeerMessage>[0]): void {
    const data = Uint8Array.from(encodePeerMessage(message)).buffer;
    this.dispatchEvent(Object.assign(new Event('message'), { data }));
  }
  join(): void {
    this.readyState = 1;
    this.deliver({ type: 'authenticated' });
    const data = { id: 'ann', otherEndpoints: [] };
    this.deliver({ type: 'mediaEvent', data: JSON.stringify({ type: 'connected', data }) });
  }
  lose(reason: string, code = 1000): void {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
}

class FakeConnection extends EventTarget {
  close(): void {}
}

const NAMES = ['WebSocket', 'RTCPeerConnection', 'navigator'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let sockets: FakeSocket[];
let asked: number;

beforeEach(() => {
  jest.useFakeTimers();
  // Every pause has its maximum length.
  jest.spyOn(Math, 'random').mockReturnValue(1);
  sockets = [];
  asked = 0;
  for (const [i, value] of [FakeSocket, FakeConnection, {}].entries()) {
    Object.defineProperty(globalThis, NAMES[i] as string, { value, configurable: true });
  }
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
});

const seat = (): { url: string; token: string } => ({ url: 'ws://node', token: `seat ${(asked += 1)}` });

/** Joins with seats that die `lifeMs` after connecting. Returns the codes of the ends. */
function call(lifeMs: number, options: Partial<ConnectOptions> = {}): { client: RoomClient; ends: string[] } {
  const client = new RoomClient();
  const ends: string[] = [];
  client.on('ended', ({ code }) => ends.push(code));
  client.on('connected', () => {
    const socket = sockets.at(-1) as FakeSocket;
    setTimeout(() => socket.lose('Peer removed'), lifeMs);
  });
  client.connect({ url: 'ws://node', token: 'first', renew: seat, ...options }).catch(() => undefined);
  return { client, ends };
}

/** Lets every seat connect as soon as it is tried. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    for (const socket of sockets) if (socket.readyState === 0) socket.join();
    await jest.advanceTimersByTimeAsync(100);
  }
}

test('replaces seats that die at once with growing pauses', async () => {
  const { client } = call(300);
  // 0.5, 1, 2, 4 and 8 s, plus 0.3 s of life each.
  await pass(17_500);
  expect(asked).toBe(5);
  client.leave();
});

test('ends a call after 20 seats that die at once', async () => {
  const { ends } = call(300);
  await pass(300_000);
  expect(ends).toEqual(['REMOVED']);
  expect(asked).toBe(20);
});

test('lets the page limit how many seats may die at once', async () => {
  const { ends } = call(300, { reconnect: { maxSeats: 2 } });
  await pass(10_000);
  expect(ends).toEqual(['REMOVED']);
  expect(asked).toBe(2);
});

test('counts seats that the server refuses, too', async () => {
  const { ends } = call(300, { reconnect: { maxSeats: 3 } });
  await pass(200);
  for (let seconds = 0; seconds < 60; seconds += 1) {
    for (const socket of sockets) if (socket.readyState === 0) socket.lose('room not found');
    await jest.advanceTimersByTimeAsync(1_000);
  }
  expect(ends).toEqual(['ROOM_ENDED']);
  expect(asked).toBe(3);
});

test('resets the count after a seat that lasts', async () => {
  const { client, ends } = call(15_000, { reconnect: { maxSeats: 2 } });
  await pass(100_000);
  expect(ends).toEqual([]);
  expect(asked).toBeGreaterThan(4);
  client.leave();
});

/** Close event of a node that restarts. */
const RESTART = ['Node stopped', 1012] as const;

/** Joins over connections that end `lifeMs` after each join, with this close event. Returns the pauses and the end. */
function losses(
  lifeMs: number,
  [reason, code]: Readonly<Parameters<FakeSocket['lose']>>,
  reconnect: ReconnectOptions = {},
): { client: RoomClient; delays: number[]; ends: string[] } {
  const client = new RoomClient();
  const [ends, delays]: [string[], number[]] = [[], []];
  client.on('ended', ({ code }) => ends.push(code));
  client.on('reconnecting', (_attempt, delayMs) => delays.push(delayMs));
  client.on('connected', () => {
    const socket = sockets.at(-1) as FakeSocket;
    setTimeout(() => socket.lose(reason, code), lifeMs);
  });
  client.connect({ url: 'ws://node', token: 'first', reconnect }).catch(() => undefined);
  return { client, delays, ends };
}

test('returns without growing pauses to a cluster whose nodes restart one after the other', async () => {
  const { client, delays } = losses(3_000, RESTART);
  await pass(30_000);
  expect(delays.length).toBeGreaterThan(5);
  expect(new Set(delays)).toEqual(new Set([500]));
  client.leave();
});

test('reconnects with growing pauses to a server that restarts at once and for ever, and ends the call after 20', async () => {
  const { delays, ends } = losses(300, RESTART);
  await pass(300_000);
  expect(delays.slice(0, 6)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000]);
  expect(ends).toEqual(['UNREACHABLE']);
});

test('reconnects with growing pauses after connections lost at once, and ends the call after 20', async () => {
  const { delays, ends } = losses(300, ['']);
  await pass(300_000);
  expect(delays.slice(0, 6)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000]);
  expect(delays).toHaveLength(20);
  expect(ends).toEqual(['UNREACHABLE']);
});

test('counts a connection that is lost at once as a failed attempt', async () => {
  const { ends } = losses(300, [''], { maxAttempts: 3 });
  await pass(10_000);
  expect(ends).toEqual(['UNREACHABLE']);
  expect(sockets).toHaveLength(4);
});

test('lets the page limit how long an outage may last, whether or not the server answers', async () => {
  const client = new RoomClient();
  const ends: string[] = [];
  client.on('ended', ({ code, message }) => ends.push(`${code}: ${message}`));
  client.connect({ url: 'ws://node', token: 'first', reconnect: { maxOutageMs: 15_000 } }).catch(() => undefined);
  await pass(11_000);
  sockets.at(-1)?.lose('');
  // The next sockets get no answer.
  await jest.advanceTimersByTimeAsync(14_900);
  expect(ends).toEqual([]);
  await jest.advanceTimersByTimeAsync(200);
  expect(ends).toEqual(['UNREACHABLE: the connection was lost for 15 s']);
});

test('does not count an outage that ends in time against the next one', async () => {
  const client = new RoomClient();
  const ends: string[] = [];
  client.on('ended', ({ code }) => ends.push(code));
  client.connect({ url: 'ws://node', token: 'first', reconnect: { maxOutageMs: 15_000 } }).catch(() => undefined);
  await pass(11_000);
  sockets.at(-1)?.lose('');
  await pass(30_000);
  expect(ends).toEqual([]);
  client.leave();
});
