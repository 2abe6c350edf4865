import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SessionDescription, SignalRequest } from '@livekit/protocol';
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

  send(): void {}

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
  new SignalSocket(socket as unknown as WebSocket, participation, { log: silentLog, clock }).open();
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
