// A client whose server vanishes after it has named the node that continues the room, with only the browser features
// that this needs.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { encodePeerMessage } from '@bloom/protocol';
import { RoomClient } from './client.js';
import type { ConnectOptions } from './client-types.js';

const SEAT = 'ws://a.example/socket/peer/websocket';
const STANDBY = 'b.example/socket/peer/websocket';
const AT_STANDBY = `ws://${STANDBY}`;

class FakeSocket extends EventTarget {
  static readonly OPEN = 1;
  readyState = 0;
  constructor(readonly url: string) {
    super();
    asked.push(url);
    if (url === forbidden) throw new DOMException('mixed content', 'SecurityError');
    sockets.push(this);
  }
  send(): void {}
  close(): void {
    this.readyState = 3;
  }
  deliver(message: object): void {
    const { buffer, byteOffset, byteLength } = new Uint8Array(encodePeerMessage(message as never));
    const data = buffer.slice(byteOffset, byteOffset + byteLength);
    this.dispatchEvent(Object.assign(new Event('message'), { data }));
  }
  event(event: object): void {
    this.deliver({ type: 'mediaEvent', data: JSON.stringify(event) });
  }
  open(): void {
    this.readyState = 1;
    this.dispatchEvent(new Event('open'));
  }
  join(standby?: string): void {
    this.open();
    this.deliver({ type: 'authenticated' });
    this.event({ type: 'connected', data: { id: 'ann', otherEndpoints: [], features: ['standby'] } });
    if (standby !== undefined) this.event({ type: 'custom', data: { type: 'standby', data: { url: standby } } });
  }
  lose(code = 1006, reason = ''): void {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
}

class FakeConnection extends EventTarget {
  close(): void {}
}

const world = globalThis as unknown as Record<string, unknown>;
const before = world['WebSocket'];
let sockets: FakeSocket[];
let asked: string[];
let forbidden: string;
let client: RoomClient;

beforeEach(() => {
  [sockets, asked, forbidden] = [[], [], ''];
  world['WebSocket'] = FakeSocket;
  world['RTCPeerConnection'] = FakeConnection;
  world['navigator'] ??= {};
  jest.useFakeTimers();
});
afterEach(() => {
  client.leave();
  jest.useRealTimers();
  world['WebSocket'] = before;
  delete world['RTCPeerConnection'];
});

const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const last = (): FakeSocket => sockets.at(-1)!;

/** Joins at the seat's address, whose server names the standby. */
async function join(options: Partial<ConnectOptions> = {}): Promise<void> {
  client = new RoomClient();
  const connected = client.connect({ url: SEAT, token: 'secret', ...options });
  sockets[0]!.join(STANDBY);
  await connected;
  // Long enough for the seat to count as good.
  await pass(20_000);
}

/** Loses the latest connection, and returns the address of the next attempt within that time. */
async function next(code: number, reason = '', ms = 2_000): Promise<string> {
  const count = sockets.length;
  last().lose(code, reason);
  await pass(ms);
  expect(sockets).toHaveLength(count + 1);

  return last().url;
}

test('goes to the standby at once when the server vanishes', async () => {
  await join();
  expect(await next(1006, '', 100)).toBe(AT_STANDBY);
});

test('stays with a server that closes the connection itself', async () => {
  await join();
  expect(await next(1012, 'Room moved', 100)).toBe(SEAT);
});

test('tries the address of its seat and the standby by turns', async () => {
  await join();
  expect([await next(1006), await next(1006), await next(1013, 'try again'), await next(1006)]).toEqual([
    AT_STANDBY,
    SEAT,
    AT_STANDBY,
    SEAT,
  ]);
});

test('goes from the standby to the next one', async () => {
  await join();
  await next(1006);
  last().join('c.example/socket/peer/websocket');
  await pass(20_000);
  expect(await next(1006)).toBe('ws://c.example/socket/peer/websocket');
  expect([await next(1006), await next(1006), await next(1006)]).toEqual([
    SEAT,
    AT_STANDBY,
    'ws://c.example/socket/peer/websocket',
  ]);
});

test('comes back to the standby where it is, if the server names no other', async () => {
  await join();
  await next(1006);
  last().join();
  await pass(20_000);
  expect(await next(1006)).toBe(AT_STANDBY);
});

test('asks at the address of its seat before it believes a standby that does not know the room', async () => {
  await join();
  await next(1006);
  expect(await next(1000, 'room not found')).toBe(SEAT);
  expect(client.state).toBe('reconnecting');
  expect(await next(1006)).toBe(AT_STANDBY);
  last().lose(1000, 'room not found');
  expect(client.state).toBe('ended');
});

test('counts no attempt against the address of its seat if the standby is out of reach', async () => {
  await join({ reconnect: { maxAttempts: 1 } });
  expect([await next(1006), await next(1006)]).toEqual([AT_STANDBY, SEAT]);
  last().lose();
  expect(client.state).toBe('ended');
});

test('gives up a standby that it does not reach within 2 s', async () => {
  await join();
  await next(1006, '', 100);
  await pass(4_000);
  expect(last().url).toBe(SEAT);
});

test('waits at a standby that it has reached', async () => {
  await join();
  await next(1006, '', 100);
  last().open();
  await pass(9_000);
  expect(last().url).toBe(AT_STANDBY);
});

test('goes to the address of its seat if the browser refuses that of the standby', async () => {
  await join();
  forbidden = AT_STANDBY;
  expect(await next(1006, '', 2_100)).toBe(SEAT);
});

test('does not give the call up because the browser refuses the standby while its server is still away', async () => {
  await join();
  forbidden = AT_STANDBY;
  await next(1006, '', 2_100);
  expect(await next(1006, '', 5_000)).toBe(SEAT);
  expect(client.state).toBe('reconnecting');
});

test('does not try a standby again that the browser refuses', async () => {
  await join();
  forbidden = AT_STANDBY;
  await next(1006, '', 2_100);
  await next(1006, '', 5_000);
  await next(1006, '', 5_000);
  expect(asked).toEqual([SEAT, AT_STANDBY, SEAT, SEAT, SEAT]);
});

test.each([
  ['wss://a.example', `wss://${STANDBY}`],
  ['a.example', `ws://${STANDBY}`],
])('reaches the standby of a seat at %s at %s', async (url, expected) => {
  await join({ url });
  expect(await next(1006)).toBe(expected);
});

test('forgets the standby of a seat that it has given up', async () => {
  const other = 'ws://d.example/socket/peer/websocket';
  await join({ renew: () => ({ url: other, token: 'other' }) });
  expect(await next(1000, 'room not found')).toBe(other);
  last().join();
  await pass(20_000);
  expect(await next(1006)).toBe(other);
});
