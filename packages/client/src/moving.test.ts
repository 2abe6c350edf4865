// A client that follows its room to another node, with only the browser features that this needs.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import { RoomClient } from './client.js';

class FakeSocket extends EventTarget {
  static readonly OPEN = 1;
  readyState = 0;
  readonly sent: string[] = [];
  constructor(readonly url: string) {
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
    const { buffer, byteOffset, byteLength } = new Uint8Array(encodePeerMessage(message as never));
    const data = buffer.slice(byteOffset, byteOffset + byteLength);
    this.dispatchEvent(Object.assign(new Event('message'), { data }));
  }
  event(type: string, data: object = {}): void {
    const event = type === 'connected' || type.startsWith('endpoint') ? { type, data } : custom(type, data);
    this.deliver({ type: 'mediaEvent', data: JSON.stringify(event) });
  }
  /** Others are named with the tracks that they publish. */
  join(others: Record<string, string[]> = {}): void {
    this.readyState = 1;
    this.dispatchEvent(new Event('open'));
    this.deliver({ type: 'authenticated' });
    const otherEndpoints = Object.entries(others).map(([id, ids]) => ({
      id,
      type: 'webrtc',
      metadata: id,
      tracks: tracks(ids),
    }));
    this.event('connected', { id: 'ann', otherEndpoints, features: ['pause', 'data', 'move', 'fallback'] });
  }
  lose(code = 1006, reason = ''): void {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
  has(text: string): boolean {
    return this.sent.some((one) => one.includes(text));
  }
}

const custom = (type: string, data: object): object => ({ type: 'custom', data: { type, data } });
const tracks = (ids: readonly string[]): object =>
  Object.fromEntries(
    ids.map((id) => [id, { metadata: null, kind: 'video', simulcastConfig: { enabled: false, activeEncodings: [] } }]),
  );

class FakeChannel extends EventTarget {
  readyState = 'connecting';
  bufferedAmount = 0;
  readonly sent: string[] = [];
  constructor(readonly label: string) {
    super();
  }
  send(frame: string): void {
    this.sent.push(frame.slice(1));
  }
  open(): void {
    this.readyState = 'open';
    this.dispatchEvent(new Event('open'));
  }
}

class FakeConnection extends EventTarget {
  closed = false;
  readonly channels: FakeChannel[] = [];
  readonly senders: unknown[] = [];
  /** Ids of the m-lines whose pictures arrive. */
  readonly pictures = new Set<string>();
  readonly given: unknown[] = [];
  /** Ids of m-lines, and whether their encodings are to be sent. */
  readonly activated: unknown[] = [];
  readonly transceivers: { mid: string; direction: string; currentDirection: string | null }[] = [];
  signalingState = 'stable';
  connectionState = 'new';
  localDescription = { sdp: 'v=0' };
  constructor() {
    super();
    connections.push(this);
  }
  setConfiguration(): void {}
  addTransceiver(media: unknown, { direction }: { direction: string }): unknown {
    const transceiver = {
      mid: String(this.transceivers.length),
      direction,
      currentDirection: null,
      sender: {
        replaceTrack: async (given: unknown) => void this.given.push(given),
        getParameters: () => ({ encodings: [{ active: false }] }),
        setParameters: async ({ encodings: [encoding] }: RTCRtpSendParameters) =>
          void this.activated.push([transceiver.mid, encoding?.active]),
      },
      receiver: { track: { kind: 'video' } },
    };
    this.senders.push(media);
    this.transceivers.push(transceiver);
    return transceiver;
  }
  getTransceivers(): unknown[] {
    return this.transceivers;
  }
  async createOffer(): Promise<object> {
    return {};
  }
  async setLocalDescription(): Promise<void> {}
  async setRemoteDescription(): Promise<void> {
    for (const one of this.transceivers) one.currentDirection = one.direction;
  }
  async getStats(): Promise<unknown> {
    return new Map(
      [...this.pictures].map((mid) => [mid, { type: 'inbound-rtp', kind: 'video', mid, frameWidth: 640 }]),
    );
  }
  createDataChannel(label: string): FakeChannel {
    const channel = new FakeChannel(label);
    this.channels.push(channel);
    return channel;
  }
  removeTrack(): void {}
  close(): void {
    this.closed = true;
    for (const channel of this.channels) channel.readyState = 'closed';
  }
}

const world = globalThis as unknown as Record<string, unknown>;
const before = world['WebSocket'];
let sockets: FakeSocket[];
let connections: FakeConnection[];
let log: string[];
let client: RoomClient;

beforeEach(async () => {
  [sockets, connections, log] = [[], [], []];
  world['WebSocket'] = FakeSocket;
  world['RTCPeerConnection'] = FakeConnection;
  world['navigator'] ??= {};
  jest.useFakeTimers();
  client = new RoomClient();
  for (const event of ['peerJoined', 'peerLeft', 'trackAdded', 'trackRemoved', 'trackReady', 'reconnecting'] as const)
    client.on(event, (...[one]: unknown[]) => void log.push(`${event} ${(one as { id?: string }).id ?? ''}`.trim()));
  const connected = client.connect({ url: 'ws://node/socket/peer/websocket', token: 'secret' });
  sockets[0]!.join({ bob: ['b1'] });
  await connected;
  await show(0, { '0': 'b1' });
  log = [];
});
afterEach(() => {
  client.leave();
  jest.useRealTimers();
  world['WebSocket'] = before;
  delete world['RTCPeerConnection'];
});

const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const camera = { kind: 'video', contentHint: '', readyState: 'live', addEventListener() {} } as never;

/** Tells the client that its room has moved, and waits until it has opened its next session. */
async function move(session: number, data: object = {}): Promise<void> {
  sockets[session]!.event('roomMoved', data);
  await import('./moving.js');
  await pass(0);
}

/** Negotiates the tracks of the others with one of the sessions. Their pictures arrive. */
async function show(session: number, mids: Record<string, string>): Promise<void> {
  const [socket, connection] = [sockets[session]!, connections[session]!];
  socket.event('offerData', { tracksTypes: { video: Object.keys(mids).length }, integratedTurnServers: [] });
  await pass(0);
  const all = { ...Object.fromEntries(published(socket)), ...mids };
  socket.event('sdpAnswer', { type: 'answer', sdp: 'v=0', midToTrackId: all });
  connection.connectionState = 'connected';
  connection.dispatchEvent(new Event('connectionstatechange'));
  await pass(0);
  for (const [mid, id] of Object.entries(mids)) {
    connection.pictures.add(mid);
    const track = { kind: 'video', from: session, id };
    connection.dispatchEvent(Object.assign(new Event('track'), { transceiver: { mid }, track }));
  }
}

/** Returns mid and id of each track, or of each second encoding, in the last offer. */
function published(socket: FakeSocket, which = 'midToTrackId'): [string, string][] {
  const offer = socket.sent.findLast((text) => text.includes('sdpOffer'));
  return offer === undefined ? [] : Object.entries(JSON.parse(offer).data.data[which]);
}

test('plays over the first connection until the second one shows as much', async () => {
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await pass(1_000);
  expect(client.track('b1')?.media).toMatchObject({ from: 0 });
  expect(sockets[0]!.has('moved')).toBe(false);
  await show(1, { '0': 'b1' });
  await pass(100);
  expect(client.track('b1')?.media).toMatchObject({ from: 1 });
  expect(sockets[0]!.has('moved')).toBe(true);
  expect(log).toEqual(['trackReady b1']);
  expect(client.state).toBe('connected');
});

test('keeps the first connection for the others until they have followed too', async () => {
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '0': 'b1' });
  await pass(5_000);
  expect(connections[0]!.closed).toBe(false);
  sockets[0]!.event('othersMoved');
  await pass(1);
  expect(connections.map(({ closed }) => closed)).toEqual([true, false]);
});

test('goes on without a track that does not come within 5 s', async () => {
  await move(0);
  sockets[1]!.join({});
  await pass(4_900);
  expect(client.peers.map(({ id }) => id)).toEqual(['bob']);
  await pass(200);
  expect(log).toEqual(['trackRemoved b1', 'peerLeft bob']);
});

test('does not wait for the pictures of a muted track', async () => {
  sockets[0]!.event('trackMuted', { trackId: 'b1', muted: true, by: 'publisher' });
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  sockets[1]!.event('trackMuted', { trackId: 'b1', muted: true, by: 'publisher' });
  await pass(200);
  expect(sockets[0]!.has('moved')).toBe(true);
  expect(client.track('b1')?.muted).toBe(true);
});

test('publishes the same media under the same id over both connections, and mutes both', async () => {
  client.publish(camera).catch(() => undefined);
  await show(0, {});
  const [[, id]] = published(sockets[0]!) as [[string, string]];
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '1': 'b1' });
  expect(published(sockets[1]!)).toEqual([['0', id]]);
  expect(connections[1]!.senders[0]).toBe(connections[0]!.senders.at(-1));
  await client.localTracks[0]!.mute();
  expect(connections.map(({ given }) => given)).toEqual([[null], [null]]);
  expect(sockets.map((socket) => socket.has('muteTrack'))).toEqual([true, true]);
  await pass(200);
  sockets[0]!.event('othersMoved');
  await pass(1);
  expect(client.localTracks[0]).toMatchObject({ id, muted: true });
});

test('offers the second encoding over both connections, and sends it over those that want it', async () => {
  client.publish(camera, { codecs: ['av1', 'vp8'] }).catch(() => undefined);
  await show(0, {});
  const [[mid, trackId]] = published(sockets[0]!, 'fallbacks') as [[string, string]];
  sockets[0]!.event('fallbackWanted', { trackId, wanted: true });
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '2': 'b1' });
  expect(published(sockets[1]!)).toEqual([['0', trackId]]);
  expect(published(sockets[1]!, 'fallbacks')).toEqual([['1', trackId]]);
  expect(connections.map(({ activated }) => activated)).toEqual([[[mid, true]], []]);

  sockets[1]!.event('fallbackWanted', { trackId, wanted: true });
  await pass(200);
  expect(sockets[0]!.has('moved')).toBe(true);
  sockets[0]!.event('fallbackWanted', { trackId, wanted: false });
  sockets[1]!.event('fallbackWanted', { trackId, wanted: false });
  expect(connections.map(({ activated }) => activated)).toEqual([
    [
      [mid, true],
      [mid, false],
    ],
    [
      ['1', true],
      ['1', false],
    ],
  ]);
});

test('publishes a muted track muted', async () => {
  client.publish(camera).catch(() => undefined);
  await show(0, {});
  await client.localTracks[0]!.mute();
  await move(0);
  sockets[1]!.join({});
  await show(1, {});
  expect(connections[1]!.given).toEqual([null]);
  expect(sockets[1]!.has('muteTrack')).toBe(true);
});

test('sends each message over one connection, and reads both', async () => {
  const messages: string[] = [];
  client.on('data', ({ data }) => messages.push(String(data)));
  client.openData('chat').catch(() => undefined);
  const [old] = connections[0]!.channels;
  old!.open();
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '0': 'b1' });
  const [fresh] = connections[1]!.channels;
  await pass(1_000);
  expect(sockets[0]!.has('moved')).toBe(false);
  fresh!.open();
  await pass(100);
  expect(sockets[0]!.has('moved')).toBe(true);

  await client.sendData('chat', 'one');
  sockets[0]!.event('othersMoved');
  client.sendData('chat', 'two').catch(() => undefined);
  for (const channel of [old, fresh])
    channel!.dispatchEvent(Object.assign(new Event('message'), { data: `\u0003bobover ${channel === old ? 1 : 2}` }));
  await pass(900);
  expect([old!.sent, fresh!.sent]).toEqual([['one'], []]);
  await pass(200);
  expect([old!.sent, fresh!.sent]).toEqual([['one'], ['two']]);
  expect(messages).toEqual(['over 1', 'over 2']);
});

test('reads the first connection until its server ends it, since others may be slower', async () => {
  const messages: string[] = [];
  client.on('data', ({ data }) => messages.push(String(data)));
  client.openData('chat').catch(() => undefined);
  const [old] = connections[0]!.channels;
  old!.open();
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '0': 'b1' });
  connections[1]!.channels[0]!.open();
  await pass(100);
  const moved = (): number => sockets[0]!.sent.filter((text) => text.includes('"moved"')).length;
  sockets[0]!.event('othersMoved');
  expect(moved()).toBe(1);
  await pass(1_000);
  expect(moved()).toBe(2);
  client.openData('pointer').catch(() => undefined);
  expect(connections.map(({ channels }) => channels.map(({ label }) => label))).toEqual([
    ['chat'],
    ['chat', 'pointer'],
  ]);

  await pass(5_000);
  old!.dispatchEvent(Object.assign(new Event('message'), { data: '\u0003boblate' }));
  expect(messages).toEqual(['late']);
  sockets[0]!.lose(1012, 'Room moved');
  expect(connections.map(({ closed }) => closed)).toEqual([true, false]);
  expect(client.state).toBe('connected');
  expect(connections[1]!.channels).toHaveLength(2);
});

test('closes a first connection that its server does not end', async () => {
  client.openData('chat').catch(() => undefined);
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '0': 'b1' });
  connections[1]!.channels[0]!.open();
  await pass(100);
  sockets[0]!.event('othersMoved');
  await pass(10_500);
  expect(connections[0]!.closed).toBe(false);
  await pass(1_000);
  expect(connections[0]!.closed).toBe(true);
});

test('follows at once when the server has waited long enough, or has died', async () => {
  for (const [code, reason] of [
    [1012, 'Room moved'],
    [1006, ''],
  ] as const) {
    await move(sockets.length - 1);
    const next = sockets.at(-1)!;
    next.join({});
    await pass(10);
    sockets.at(-2)!.lose(code, reason);
    expect(client.state).toBe('connected');
    await show(sockets.length - 1, {});
  }
  expect(log).not.toContain('reconnecting');
});

test('reconnects when the second connection fails', async () => {
  await move(0);
  sockets[1]!.lose();
  expect(client.state).not.toBe('connected');
  expect(connections.map(({ closed }) => closed)).toEqual([true, true]);
});

test('ends the call when its second connection says that it was removed', async () => {
  await move(0);
  const ended = new Promise((resolve) => client.on('ended', ({ code }) => resolve(code)));
  sockets[1]!.join({ bob: ['b1'] });
  sockets[1]!.lose(1000, 'Peer removed');
  expect(await ended).toBe('REMOVED');
  expect(sockets[0]!.readyState).toBe(3);
});

test('leaves over both connections', async () => {
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  client.leave();
  await pass(5_000);
  expect(sockets.map((socket) => socket.has('disconnect'))).toEqual([true, true]);
  expect(connections.map(({ closed }) => closed)).toEqual([true, true]);
  expect(sockets).toHaveLength(2);
});

test('opens the second websocket at an address that the server names', async () => {
  await move(0, { url: 'wss://other/socket/peer/websocket' });
  expect(sockets.map(({ url }) => url)).toEqual([
    'ws://node/socket/peer/websocket',
    'wss://other/socket/peer/websocket',
  ]);
});

test('follows a room that moves again', async () => {
  await move(0);
  sockets[1]!.join({ bob: ['b1'] });
  await show(1, { '0': 'b1' });
  await pass(100);
  await move(1);
  expect(connections[0]!.closed).toBe(true);
  sockets[2]!.join({ bob: ['b1'] });
  await show(2, { '0': 'b1' });
  await pass(100);
  expect(client.track('b1')?.media).toMatchObject({ from: 2 });
});
