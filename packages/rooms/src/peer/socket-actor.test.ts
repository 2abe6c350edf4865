import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openActorSystem, type ActorSystem, type Behaviour } from '@bloom/actors';
import { ManualClock } from '@bloom/time/testing';
import { silentLog } from '@bloom/log';
import type { PeerProtocol, PeerRef, SocketRef } from './peer-messages.js';
import { socketBehaviour } from './socket-actor.js';
import { TestSocket } from '../testing/test-node.js';

let system: ActorSystem;
let socket: TestSocket;
let ref: SocketRef;
let peer: PeerRef;

beforeEach(() => {
  system = openActorSystem({ log: silentLog, clock: new ManualClock() });
  socket = new TestSocket();
  ref = system.spawn(socketBehaviour(socket));
  peer = system.spawn({ kind: 'peer', init: () => null, handlers: {} } as unknown as Behaviour<PeerProtocol, null>);
  system.cast(ref, { type: 'bind', peer });
});
afterEach(() => system.close());

test('closes a socket as after a failure when its peer disappears without notice', async () => {
  await system.idle();
  await system.stop(peer);
  await system.idle();

  expect(socket.closed).toBe('1011 Internal server error');
  expect(system.isAlive(ref)).toBe(false);
});

test("closes with the room's last reason and sends nothing after it", async () => {
  system.cast(ref, { type: 'close', code: 1000, reason: 'Peer removed' });
  system.cast(ref, { type: 'send', text: '{}' });
  await system.stop(peer);
  await system.idle();

  expect(socket.closed).toBe('1000 Peer removed');
  expect(socket.sent).toEqual([]);
});

test('keeps sending events while it waits for a pong', async () => {
  let pong: (alive: boolean) => void = () => {};
  socket.ping = () => new Promise((resolve) => (pong = resolve));
  const alive = system.call(ref, { type: 'ping', timeoutMs: 2_000 });
  system.cast(ref, { type: 'send', text: '{"a":1}' });
  await system.idle();

  expect(socket.sent).toEqual([{ a: 1 }]);
  pong(true);
  expect(await alive).toBe(true);
});
