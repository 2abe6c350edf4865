// A viewer of a room, with only the browser features that this needs.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { BloomClient } from '@bloom/server-sdk';
import { WhepPlayer } from './whep-player.js';

class Connection extends EventTarget {
  connectionState = 'new';
  readonly localDescription = { sdp: 'v=0' };
  constructor() {
    super();
    connections.push(this);
  }
  addTransceiver(): void {}
  async setLocalDescription(): Promise<void> {}
  async setRemoteDescription(): Promise<void> {}
  close(): void {
    this.connectionState = 'closed';
  }
  become(state: string): void {
    this.connectionState = state;
    this.dispatchEvent(new Event('connectionstatechange'));
  }
  show(track: string): void {
    this.dispatchEvent(Object.assign(new Event('track'), { track }));
  }
}

class Stream {
  readonly tracks = new Set<unknown>();
  addTrack(track: unknown): void {
    this.tracks.add(track);
  }
  removeTrack(track: unknown): void {
    this.tracks.delete(track);
  }
  getTracks(): unknown[] {
    return [...this.tracks];
  }
}

const world = globalThis as unknown as Record<string, unknown>;
const NAMES = ['RTCPeerConnection', 'MediaStream', 'location', 'fetch'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let connections: Connection[];
let seats: string[];
let left: string[];
let asked: { url: string; headers: Record<string, string> }[];
let problems: (string | null)[];
/** The server's reaction to the next requests. */
let answer: (status?: number) => Promise<Response>;
let player: WhepPlayer;

const text = (status: number, body: string): Promise<Response> => Promise.resolve(new Response(body, { status }));
/** Rejects like `fetch` when nothing answers. */
const silence = (): Promise<Response> => Promise.reject(new TypeError('fetch failed'));

/** A server with one room. */
async function serve(input: URL, { method, headers }: RequestInit): Promise<Response> {
  const url = String(input);
  if (method === 'DELETE') {
    left.push(url.split('/').at(-1) as string);
    return new Response(null, { status: 204 });
  }
  if (url.includes('/whep')) {
    asked.push({ url, headers: headers as Record<string, string> });
    return answer();
  }
  const refused = await answer();
  if (!refused.ok) return refused;
  const peer = { id: `peer${seats.length}` };
  seats.push(peer.id);
  return new Response(JSON.stringify({ data: { peer, token: `token of ${peer.id}` } }), { status: 201 });
}

beforeEach(() => {
  jest.useFakeTimers();
  [connections, seats, left, problems, asked] = [[], [], [], [], []];
  answer = () => text(201, 'v=0');
  const values = [Connection, Stream, { host: 'node' }, serve];
  for (const [i, name] of NAMES.entries()) {
    Object.defineProperty(world, name, { value: values[i], configurable: true, writable: true });
  }
  player = new WhepPlayer({
    api: new BloomClient({ url: 'http://node/', token: 'secret' }),
    base: 'http://node/',
    roomId: 'r',
    what: { peer: 'ann' },
    onProblem: (problem) => problems.push(problem?.code ?? null),
  });
});

afterEach(() => {
  player.close();
  jest.useRealTimers();
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(world, name);
    else Object.defineProperty(world, name, descriptor);
  }
});

const pass = (ms = 0): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const shown = (): unknown[] => player.stream.getTracks();

test('requests what the viewer should see, with the token of its own seat', async () => {
  await pass();
  expect(asked[0]?.url).toBe('http://node/whep?peer=ann');
  expect(asked[0]?.headers['authorization']).toBe('Bearer token of peer0');
});

test('restores a lost picture as soon as the server answers', async () => {
  await pass();
  connections[0]!.become('connected');
  connections[0]!.show('first');
  answer = silence;
  connections[0]!.become('failed');
  expect(problems.at(-1)).toBe('connection-lost');
  expect(shown()).toEqual([]);
  expect(left).toEqual(['peer0']);
  await pass(10_000);
  expect(problems.at(-1)).toBe('server-unreachable');
  expect(seats).toEqual(['peer0']);
  answer = () => text(201, 'v=0');
  await pass(3_000);
  connections.at(-1)!.become('connected');
  connections.at(-1)!.show('second');
  expect(problems.at(-1)).toBeNull();
  expect(shown()).toEqual(['second']);
  expect(seats).toEqual(['peer0', 'peer1']);
  expect(left).toEqual(['peer0']);
});

test('leaves a short interruption to the browser, and counts a longer one as a loss', async () => {
  await pass();
  connections[0]!.become('connected');
  connections[0]!.become('disconnected');
  await pass(2_000);
  connections[0]!.become('connected');
  await pass(60_000);
  expect(seats).toEqual(['peer0']);
  connections[0]!.become('disconnected');
  await pass(10_000);
  expect(seats).toEqual(['peer0', 'peer1']);
  expect(left).toEqual(['peer0']);
});

test('does not retry a path that never came up', async () => {
  await pass();
  connections[0]!.become('failed');
  await pass(60_000);
  expect(problems).toEqual(['connection-lost']);
  expect(seats).toEqual(['peer0']);
  expect(left).toEqual(['peer0']);
});

test('reports a room that no longer exists, and keeps no seat', async () => {
  await pass();
  connections[0]!.become('connected');
  answer = () => text(404, '{"errors":"Room r does not exist"}');
  connections[0]!.become('failed');
  await pass(60_000);
  expect(problems.at(-1)).toBe('no-such-room');
  expect(connections).toHaveLength(2);
  expect(left).toEqual(['peer0']);
});

test.each([
  ['{"errors":"Reached peer limit"}', 503, 'room-full'],
  ['<html>Bad gateway</html>', 502, 'refused'],
])('gives the seat back when the session is refused as %j with status %d', async (body, status, code) => {
  let requests = 0;
  answer = () => text((requests += 1) === 1 ? 201 : status, body);
  player.close();
  player = new WhepPlayer({
    api: new BloomClient({ url: 'http://node/', token: 'secret' }),
    base: 'http://node/',
    roomId: 'r',
    what: {},
    onProblem: (problem) => problems.push(problem?.code ?? null),
  });
  await pass(60_000);
  expect(problems).toContain(code);
  expect(left.toSorted()).toEqual(seats.toSorted());
});

test('stays away once the viewer has left, whatever was in progress', async () => {
  player.close();
  await pass(60_000);
  expect(seats).toEqual(['peer0']);
  expect(left).toEqual(['peer0']);
  expect(problems).toEqual([]);
});
