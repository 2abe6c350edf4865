// A viewer of a room in a world with as much of a browser as that takes.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Api, Seat } from '../api.js';
import { Problem, serverUnreachable } from '../problem.js';
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
let connections: Connection[];
let seats: string[];
let left: string[];
let problems: (string | null)[];
let answer: () => Promise<string>;
let player: WhepPlayer;

beforeEach(() => {
  jest.useFakeTimers();
  [connections, seats, left, problems] = [[], [], [], []];
  world['RTCPeerConnection'] = Connection;
  world['MediaStream'] = Stream;
  answer = () => Promise.resolve('v=0');
  const api = {
    takeSeat: async (): Promise<Partial<Seat>> => {
      await answer();
      seats.push(`peer${seats.length}`);
      return { peerId: seats.at(-1) as string };
    },
    watch: () => answer(),
    leaveSeat: ({ peerId }: Seat) => void left.push(peerId),
  } as unknown as Api;
  player = new WhepPlayer({
    api,
    roomId: 'r',
    what: {},
    onProblem: (problem) => problems.push(problem?.code ?? null),
  });
});

afterEach(() => {
  player.close();
  jest.useRealTimers();
  delete world['RTCPeerConnection'];
  delete world['MediaStream'];
});

const pass = (ms = 0): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const shown = (): unknown[] => player.stream.getTracks();

test('a picture that is lost comes back as soon as the server answers', async () => {
  await pass();
  connections[0]!.become('connected');
  connections[0]!.show('first');
  answer = () => Promise.reject(serverUnreachable('node'));
  connections[0]!.become('failed');
  expect([problems.at(-1), shown(), left]).toEqual(['connection-lost', [], ['peer0']]);
  await pass(10_000);
  expect([problems.at(-1), seats]).toEqual(['server-unreachable', ['peer0']]);
  answer = () => Promise.resolve('v=0');
  await pass(3_000);
  connections.at(-1)!.become('connected');
  connections.at(-1)!.show('second');
  expect([problems.at(-1), shown(), seats, left]).toEqual([null, ['second'], ['peer0', 'peer1'], ['peer0']]);
});

test('a short disturbance is left to the browser, a longer one is a loss', async () => {
  await pass();
  connections[0]!.become('connected');
  connections[0]!.become('disconnected');
  await pass(2_000);
  connections[0]!.become('connected');
  await pass(60_000);
  expect(seats).toEqual(['peer0']);
  connections[0]!.become('disconnected');
  await pass(10_000);
  expect([seats, left]).toEqual([['peer0', 'peer1'], ['peer0']]);
});

test('what never comes up is not tried for ever', async () => {
  await pass();
  connections[0]!.become('failed');
  await pass(60_000);
  expect([problems, seats, left]).toEqual([['connection-lost'], ['peer0'], ['peer0']]);
});

test('a room that is gone is told, and its seat not kept', async () => {
  await pass();
  connections[0]!.become('connected');
  answer = () => Promise.reject(new Problem('no-such-room', 'The room is gone', ''));
  connections[0]!.become('failed');
  await pass(60_000);
  expect([problems.at(-1), connections.length, left]).toEqual(['no-such-room', 2, ['peer0']]);
});

test('a viewer who has left stays away, whatever was under way', async () => {
  player.close();
  await pass(60_000);
  expect([seats, left, problems]).toEqual([['peer0'], ['peer0'], []]);
});
