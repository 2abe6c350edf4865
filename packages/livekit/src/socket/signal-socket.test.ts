import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  SessionDescription,
  SignalRequest,
  SignalResponse,
  SimulateScenario,
  UpdateParticipantMetadata,
} from '@livekit/protocol';
import { silentLog } from '@bloom/log';
import { testNode, type TestNode } from '@bloom/rooms/testing';
import type { WebSocket } from 'ws';
import { Tokens } from '../tokens.js';
import { Participation } from './participation.js';
import { SignalSocket } from './signal-socket.js';

/** The server's end of a websocket whose frames a test sends. */
class ScriptedWebSocket extends EventEmitter {
  readonly OPEN = 1;
  readonly readyState = 1;
  readonly bufferedAmount = 0;
  closed: number | undefined;
  /** The client answers pings, as every websocket does. */
  isThere = true;

  readonly sent: string[] = [];

  send(text: string): void {
    this.sent.push(text);
  }

  ping(): void {
    if (this.isThere) this.emit('pong');
  }

  close(code: number): void {
    this.closed ??= code;
    this.emit('close');
  }

  terminate(): void {
    this.close(1006);
  }
}

let node: TestNode;
let socket: ScriptedWebSocket;
let written: Uint8Array[];
beforeEach(() => {
  node = testNode();
  socket = new ScriptedWebSocket();
  const { clock, rooms } = node;
  const participation = new Participation({
    rooms,
    tokens: new Tokens([{ key: 'k', secret: 'a-secret-of-more-than-thirty-two-characters' }], clock),
    log: silentLog,
    clock,
    claims: { iss: 'k', sub: 'ann', exp: 1_000, video: { roomJoin: true } } as never,
    roomId: 'kitchen',
    peerId: 'p1',
    onEnd: () => undefined,
  });
  written = [];
  const write = (frame: Uint8Array): unknown => written.push(frame);
  new SignalSocket(socket as unknown as WebSocket, participation, { log: silentLog, clock, write }).open();
});
afterEach(() => node.close());

function send(message: SignalRequest['message'], times = 1): void {
  const frame = Buffer.from(new SignalRequest({ message }).toBinary());
  for (let i = 0; i < times; i++) socket.emit('message', frame, true);
}

test.each(['offer', 'answer'] as const)('closes the websocket of a client that sends one %s after another', (which) => {
  const message = { case: which, value: new SessionDescription({ type: which, sdp: 'v=0' }) };
  send(message, 115);
  expect(socket.closed).toBeUndefined();
  send(message, 10);
  expect(socket.closed).toBe(1008);
});

test('serves a client on that sends nothing for an hour, until it no longer answers pings', () => {
  node.clock.advance(3_600_000);
  expect(socket.closed).toBeUndefined();
  socket.isThere = false;
  node.clock.advance(30_000);
  expect(socket.closed).toBe(1006);
});

test('serves a client on that changes its metadata every 16 ms for 5 minutes', () => {
  const value = new UpdateParticipantMetadata({ metadata: 'x' });
  for (let ms = 0; ms < 300_000; ms += 16) {
    send({ case: 'updateMetadata', value });
    node.clock.advance(16);
  }
  expect(socket.closed).toBeUndefined();
});

test('serves a client on that sends ten offers too many in every minute of two hours', () => {
  const value = new SessionDescription({ type: 'offer', sdp: 'v=0' });
  for (let minute = 0; minute < 120; minute++) {
    send({ case: 'offer', value }, 30);
    for (let pings = 0; pings < 3; pings++) {
      node.clock.advance(20_000);
      send({ case: 'ping', value: 1n });
    }
  }
  expect(socket.closed).toBeUndefined();
});

test.each<[string, SignalRequest['message']]>([
  ['changes its metadata', { case: 'updateMetadata', value: new UpdateParticipantMetadata({ metadata: 'x' }) }],
  ['requests a simulation', { case: 'simulate', value: new SimulateScenario() }],
])('closes the websocket of a client that %s every 5 ms for half a minute', (_what, message) => {
  for (let ms = 0; ms < 30_000; ms += 5) {
    send(message);
    node.clock.advance(5);
  }
  expect(socket.closed).toBe(1008);
});

test('answers in the form that the client has used last, a binary frame as one buffer', () => {
  send({ case: 'ping', value: 1n });
  socket.emit('message', Buffer.from('{"ping":1}'), false);
  const [frame = new Uint8Array()] = written;
  expect(SignalResponse.fromBinary(frame.subarray(2)).message.case).toBe('pong');
  expect([written.length, socket.sent]).toEqual([1, [expect.stringMatching(/^\{"pong":"\d+"\}$/)]]);
});
