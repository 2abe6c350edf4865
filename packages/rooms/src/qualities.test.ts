// What LiveKit's clients are told of how well everybody's media flows.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { defaultRoomConfig } from './room-service.js';
import { testNode, TestSocket, type TestNode } from './testing/index.js';

let node: TestNode;
beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

interface Person {
  id: string;
  socket: TestSocket;
}

async function join(client: 'sdk' | 'livekit', hidden = false): Promise<Person> {
  const { peer, token } = await node.rooms.addPeer('kitchen', {});
  const socket = new TestSocket();
  const attached = await node.rooms.attachPeer(token, socket, client);
  if (typeof attached === 'string') throw new Error(attached);
  attached.receive(JSON.stringify([{ type: 'join', metadata: null, hidden }]));
  await node.system.idle();

  return { id: peer.id, socket };
}

async function judged({ id: peerId }: Person, quality: 'excellent' | 'good' | 'poor'): Promise<void> {
  node.media.emit.get('kitchen')?.({ type: 'connectionQuality', peerId, quality });
  await node.system.idle();
}

/** Returns the qualities that a session has been told since the last call, one list for each time. */
function heard({ socket }: Person): unknown[] {
  const inputs = socket.sent.splice(0) as { type: string; qualities?: unknown }[];
  return inputs.flatMap(({ type, qualities }) => (type === 'qualitiesChanged' ? [qualities] : []));
}

test('tells each client once of all who are judged within half a second, and others nothing', async () => {
  const [ann, bob, eve] = [await join('livekit'), await join('livekit'), await join('sdk')];
  await judged(ann, 'excellent');
  await node.advance(0.4);
  await judged(bob, 'poor');
  await judged(bob, 'good');
  await judged(eve, 'poor');
  expect(heard(ann)).toEqual([]);
  await node.advance(0.1);
  const qualities = [
    [ann.id, 'excellent'],
    [bob.id, 'good'],
    [eve.id, 'poor'],
  ];
  expect([ann, bob, eve].map(heard)).toEqual([[qualities], [qualities], []]);
  await judged(bob, 'good');
  await node.advance(1);
  expect(heard(ann)).toEqual([]);
});

test('tells of hidden participants only themselves, and of nobody who has left', async () => {
  const [ann, bob, eve] = [await join('livekit'), await join('livekit', true), await join('livekit')];
  await judged(bob, 'good');
  await judged(eve, 'good');
  await node.rooms.removePeer('kitchen', eve.id);
  await node.advance(0.5);
  expect([ann, bob].map(heard)).toEqual([[], [[[bob.id, 'good']]]]);
});
