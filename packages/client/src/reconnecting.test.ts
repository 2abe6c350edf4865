// Actions of an application while the connection is lost, with only the browser features that this needs.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import { RoomClient } from './client.js';
import type { ConnectOptions } from './client-types.js';

class FakeSocket extends EventTarget {
  static readonly OPEN = 1;
  readyState = 0;
  binaryType = '';
  readonly sent: string[] = [];
  constructor() {
    super();
    sockets.push(this);
  }
  send(frame: Uint8Array): void {
    const message = decodePeerMessage(Buffer.from(frame) as never) as { type: string; data?: string };
    this.sent.push(message.type === 'mediaEvent' ? (message.data ?? '') : message.type);
  }
  close(): void {
    this.readyState = 3;
  }
  deliver(message: object): void {
    const bytes = new Uint8Array(encodePeerMessage(message as never));
    this.dispatchEvent(
      Object.assign(new Event('message'), {
        data: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
      }),
    );
  }
  join(...others: readonly string[]): void {
    this.readyState = 1;
    this.dispatchEvent(new Event('open'));
    this.deliver({ type: 'authenticated' });
    const otherEndpoints = others.map((id) => ({ id, type: 'webrtc', metadata: null, tracks: {} }));
    const data = { id: 'ann', otherEndpoints, features: ['pause', 'data'] };
    this.deliver({ type: 'mediaEvent', data: JSON.stringify({ type: 'connected', data }) });
  }
  offerData(): void {
    const data = { type: 'offerData', data: { tracksTypes: {}, integratedTurnServers: [] } };
    this.deliver({ type: 'mediaEvent', data: JSON.stringify({ type: 'custom', data }) });
  }
  lose(code = 1006, reason = ''): void {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
}

class FakeConnection extends EventTarget {
  closed = false;
  sctp: { state: string } | null = null;
  constructor() {
    super();
    connections.push(this);
  }
  signalingState = 'stable';
  localDescription = { sdp: 'v=0' };
  setConfiguration(): void {}
  addTransceiver(): unknown {
    return {
      mid: '0',
      direction: 'sendonly',
      currentDirection: null,
      // In Firefox, operations in progress when a connection closes never settle.
      sender: { replaceTrack: () => new Promise(() => undefined) },
      receiver: { track: { kind: 'video' } },
    };
  }
  getTransceivers(): unknown[] {
    return [];
  }
  async createOffer(): Promise<object> {
    return {};
  }
  async setLocalDescription(): Promise<void> {}
  createDataChannel(label: string): EventTarget {
    if (this.closed) throw new DOMException('closed', 'InvalidStateError');
    const channel = Object.assign(new EventTarget(), { label, readyState: 'connecting', bufferedAmount: 0 });
    channels.push(channel);
    return channel;
  }
  removeTrack(): void {
    if (this.closed) throw new DOMException('closed', 'InvalidStateError');
  }
  close(): void {
    this.closed = true;
  }
}

const world = globalThis as unknown as Record<string, unknown>;
let sockets: FakeSocket[];
let connections: FakeConnection[];
let channels: (EventTarget & { readonly label: string })[];
const before = world['WebSocket'];
beforeEach(() => {
  [sockets, connections, channels] = [[], [], []];
  world['WebSocket'] = FakeSocket;
  world['RTCPeerConnection'] = FakeConnection;
  world['navigator'] ??= {};
});
afterEach(() => {
  jest.useRealTimers();
  world['WebSocket'] = before;
  delete world['RTCPeerConnection'];
});
const until = async (done: () => boolean): Promise<void> => {
  for (let i = 0; i < 300 && !done(); i++) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(done()).toBe(true);
};
const camera = {
  kind: 'video',
  contentHint: '',
  readyState: 'live',
  addEventListener() {},
} as unknown as Parameters<RoomClient['publish']>[0];

async function joined(options: Partial<ConnectOptions> = {}): Promise<RoomClient> {
  const client = new RoomClient();
  const connected = client.connect({ url: 'ws://node/socket/peer/websocket', token: 'secret', ...options });
  sockets[0]!.join();
  await connected;
  return client;
}

test('publishes tracks again if a conversation starts during the reconnection', async () => {
  const client = await joined();
  client.publish(camera).catch(() => undefined);
  sockets[0]!.lose();
  await until(() => sockets.length === 2);
  client.sendData('chat', 'hello').catch(() => undefined);
  sockets[1]!.join();
  expect(sockets[1]!.sent.filter((text) => text.includes('renegotiateTracks'))).toHaveLength(1);
  client.leave();
});

test('leaves a track unpublished that was unpublished while the connection was lost', async () => {
  const client = await joined();
  client.publish(camera).catch(() => undefined);
  sockets[0]!.offerData();
  await until(() => sockets[0]!.sent.some((text) => text.includes('sdpOffer')));
  const [track] = client.localTracks;
  sockets[0]!.lose();
  expect(client.state).toBe('reconnecting');
  let error: unknown;
  try {
    await track!.unpublish();
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeUndefined();
  expect(client.localTracks).toHaveLength(0);
  client.leave();
});

test('holds a message on a new label while the connection is lost', async () => {
  const client = await joined();
  sockets[0]!.lose();
  const outcome = await Promise.race([
    client.sendData('chat', 'hello').then(
      () => 'sent',
      (error: Error) => error.name,
    ),
    new Promise((resolve) => setTimeout(() => resolve('waits'), 20)),
  ]);
  expect(outcome).toBe('waits');
  client.leave();
});

test("refuses a message after the channels' association has ended, and continues the call", async () => {
  const client = await joined();
  connections.at(-1)!.sctp = { state: 'closed' };
  for (const text of ['hello', 'again']) {
    await expect(client.sendData('chat', text)).rejects.toMatchObject({ code: 'DATA_REFUSED' });
  }
  expect(client.state).toBe('connected');
  sockets[0]!.lose();
  await until(() => sockets.length === 2);
  sockets[1]!.join();
  client.sendData('chat', 'hello').catch(() => undefined);
  expect(channels.map(({ label }) => label)).toEqual(['chat']);
  client.leave();
});

test('holds a message for a connection that ends later than its channel', async () => {
  const client = await joined();
  const sent = client.sendData('chat', 'hello');
  let outcome = 'waits';
  sent.catch(({ code }: { code: string }) => (outcome = code));
  sockets[0]!.lose();
  channels[0]!.dispatchEvent(new Event('close'));
  await new Promise((resolve) => setTimeout(resolve, 2_200));
  expect(outcome).toBe('waits');
  client.leave();
});

test('ends the call at once if the browser refuses to open a socket or connection', async () => {
  const refused = function (): never {
    throw new DOMException('an insecure WebSocket from a page over HTTPS', 'SecurityError');
  };
  world['WebSocket'] = refused;
  const client = new RoomClient();
  const options = { url: 'ws://node/socket/peer/websocket', token: 'secret' };
  await expect(client.connect(options)).rejects.toMatchObject({ name: 'RoomClientError', code: 'UNREACHABLE' });
  expect(client.state).toBe('ended');

  world['WebSocket'] = FakeSocket;
  world['RTCPeerConnection'] = refused;
  await expect(client.connect(options)).rejects.toMatchObject({ name: 'RoomClientError', code: 'UNREACHABLE' });
  expect(client.state).toBe('ended');
  expect(sockets[0]!.readyState).toBe(3);
});

test('lets a listener for the end of a call start the next one', async () => {
  const client = new RoomClient();
  const options = { url: 'ws://node/socket/peer/websocket', token: 'secret' };
  const calls: Promise<string>[] = [];
  const call = (): void => {
    const outcome = client.connect(options).then(
      () => 'joined',
      (error: Error) => error.message,
    );
    calls.push(outcome);
  };
  client.on('ended', () => {
    if (calls.length === 1) call();
  });
  call();
  sockets[0]!.lose(1000, 'expired token');
  sockets[1]!.join();
  expect(await Promise.all(calls)).toEqual(['the server closed the connection: expired token', 'joined']);
  client.leave();
});

test('ends a call once, even if a listener calls leave as the others leave', async () => {
  const client = new RoomClient();
  const ends: string[] = [];
  client.on('ended', ({ code }) => ends.push(code));
  client.on('peerLeft', () => client.leave());
  const connected = client.connect({ url: 'ws://node/socket/peer/websocket', token: 'secret' });
  sockets[0]!.join('bob');
  await connected;
  sockets[0]!.lose(1000, 'Room stopped');
  expect(ends).toEqual(['ROOM_ENDED']);
});

test('stays out of a room that a listener leaves during the join', async () => {
  const client = new RoomClient();
  client.on('peerJoined', () => client.leave());
  const connected = client.connect({ url: 'ws://node/socket/peer/websocket', token: 'secret' });
  sockets[0]!.join('bob');
  await expect(connected).rejects.toMatchObject({ code: 'LEFT' });
  expect(client.state).toBe('ended');
});

test('accepts a renewal function that returns or throws synchronously', async () => {
  const asked: string[] = [];
  const renew = ({ code }: { code: string }): null => {
    asked.push(code);
    if (asked.length === 1) throw new Error('not signed in');
    return null;
  };
  const client = await joined({ reconnect: { firstDelayMs: 1 }, renew });
  const ended = new Promise((resolve) => client.on('ended', ({ code }) => resolve(code)));
  sockets[0]!.lose(1000, 'Peer removed');
  expect(await ended).toBe('REMOVED');
  expect(asked).toEqual(['REMOVED', 'REMOVED']);
});

test('rejects a message still waiting when the server ends the call with that reason', async () => {
  const client = await joined();
  const sent = client.sendData('chat', 'hello');
  sockets[0]!.lose(1000, 'Room stopped');
  await expect(sent).rejects.toMatchObject({ code: 'LEFT', message: expect.stringContaining('Room stopped') });
});

test('does not count a server that answers but still holds the old connection as unreachable', async () => {
  const asked: string[] = [];
  const renew = ({ code }: { code: string }): null => {
    asked.push(code);
    return null;
  };
  const client = await joined({ reconnect: { firstDelayMs: 1 }, renew });
  sockets[0]!.lose();
  await until(() => sockets.length === 2);
  const { now } = Date;
  Date.now = () => now() + 5_000;
  try {
    sockets[1]!.lose(1000, 'peer already connected');
    await until(() => sockets.length === 3 || client.state === 'ended');
  } finally {
    Date.now = now;
  }
  expect(asked).toEqual([]);
  client.leave();
});

test('keeps a track muted that was being muted when the connection was lost, and accepts the next command', async () => {
  const client = await joined();
  client.publish(camera).catch(() => undefined);
  sockets[0]!.offerData();
  await until(() => sockets[0]!.sent.some((text) => text.includes('sdpOffer')));
  const [track] = client.localTracks;
  const muting = track!.mute();
  await Promise.resolve();
  sockets[0]!.lose();
  await muting;
  expect(track!.muted).toBe(true);
  await track!.unmute();
  expect(track!.muted).toBe(false);
  client.leave();
});

test('ends a call that sends more than the server accepts with an explanation, not an endless retry', async () => {
  const client = new RoomClient();
  const connected = client.connect({ url: 'ws://node/socket/peer/websocket', token: 'secret', metadata: 'x' });
  sockets[0]!.lose(1009);
  await expect(connected).rejects.toMatchObject({ code: 'FAILED', message: expect.stringContaining('1 MiB') });

  const other = new RoomClient();
  const joining = other.connect({ url: 'ws://node/socket/peer/websocket', token: 'secret' });
  sockets[1]!.join();
  await joining;
  const ended = new Promise((resolve) => other.on('ended', ({ code }) => resolve(code)));
  sockets[1]!.lose(1009);
  expect(other.state).toBe('ended');
  expect(await ended).toBe('FAILED');
});

test('refuses metadata that no server accepts, and continues the call', async () => {
  const client = await joined();
  client.publish(camera).catch(() => undefined);
  const [track] = client.localTracks;
  const sent = sockets[0]!.sent.length;
  const large = { picture: 'ü'.repeat(600_000) };
  for (const one of [client, track!]) expect(() => one.setMetadata(large)).toThrow('1 MiB');
  expect(client.state).toBe('connected');
  expect(sockets[0]!.sent).toHaveLength(sent);
  expect(track!.metadata).toBeNull();
  client.leave();
});

test('tries again with a server that accepts the client and then falls silent', async () => {
  jest.useFakeTimers();
  const client = await joined();
  sockets[0]!.lose();
  await jest.advanceTimersByTimeAsync(1_000);
  sockets[1]!.readyState = 1;
  sockets[1]!.deliver({ type: 'authenticated' });
  await jest.advanceTimersByTimeAsync(32_000);
  expect(client.state).toBe('reconnecting');
  expect(sockets).toHaveLength(3);
  sockets[2]!.join();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(client.state).toBe('connected');
  expect(sockets).toHaveLength(3);
  client.leave();
});

test('reports what the backend allows, and every change of it', async () => {
  const client = await joined();
  expect(client.permissions).toBeNull();
  const told: unknown[] = [];
  client.on('permissionsChanged', (permissions) => told.push(permissions));
  const allow = (data: object): void =>
    sockets[0]!.deliver({
      type: 'mediaEvent',
      data: JSON.stringify({ type: 'custom', data: { type: 'permissions', data } }),
    });
  const [all, listener] = [
    { publish: ['audio', 'video', 'data'], subscribe: true, metadata: true },
    { publish: [], subscribe: true, metadata: false },
  ];
  allow(all);
  expect(client.permissions).toEqual(all);
  allow(listener);
  expect(client.permissions).toEqual(listener);
  expect(told).toEqual([all, listener]);
  client.leave();
  client.connect({ url: 'ws://older', token: 'secret' }).catch(() => undefined);
  expect(client.permissions).toBeNull();
  client.leave();
});
