import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultRoomConfig, type SessionAddress } from './room-service.js';
import type { ComponentKind } from './room/component-kind.js';
import { testNode, TestSocket, type TestNode } from './testing/index.js';

let node: TestNode;

beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

const JOIN = JSON.stringify([{ type: 'join', metadata: null }]);
const WATCH = JSON.stringify([{ type: 'join', metadata: null, hidden: true }]);
const say = (text: string): string => JSON.stringify([{ type: 'send', text }]);

async function newPeer(): Promise<{ session: SessionAddress; token: string }> {
  const { peer, token } = await node.rooms.addPeer('kitchen', {});
  return { session: { roomId: 'kitchen', peerId: peer.id, sessionId: `session of ${peer.id}` }, token };
}

/** Opens a session whose answer is the room's answer to its join request. */
async function opened(request = JOIN) {
  const added = await newPeer();
  const answer = JSON.parse(await node.rooms.openSession(added.session, request, 'request-1'));
  expect(answer.type).toBe('joined');
  return added;
}

const status = async () => (await node.rooms.getRoom('kitchen')).peers.map((peer) => peer.status);

describe('request sessions', () => {
  test('a session connects its peer, answers requests in order, and disconnects the peer when it ends', async () => {
    const { session } = await opened();
    expect(await status()).toEqual(['connected']);
    const answers = ['one', 'two'].map((text) => node.rooms.askSession(session, say(text), 'request-2'));
    expect(await Promise.all(answers)).toEqual(['one', 'two']);

    await node.rooms.closeSession(session, 'request-3');
    await node.system.idle();
    expect(await status()).toEqual(['disconnected']);
    expect(node.news().slice(-4)).toEqual([
      'peerAdded p1',
      'peerConnected p1',
      'peerMetadataUpdated p1',
      'peerDisconnected p1',
    ]);
    await expect(node.rooms.askSession(session, say('three'), 'request-4')).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
  });

  test('a session belongs to one peer', async () => {
    const { session } = await opened();
    const { peerId } = (await newPeer()).session;
    await expect(node.rooms.closeSession({ ...session, peerId }, 'request-2')).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
  });

  test('a session is refused while the peer has a live websocket, and vice versa', async () => {
    const ann = await node.join('kitchen');
    const session = { roomId: 'kitchen', peerId: ann.id, sessionId: 's' };
    await expect(node.rooms.openSession(session, JOIN, 'request-1')).rejects.toMatchObject({ code: 'PEER_CONNECTED' });

    const { token } = await opened();
    expect(await node.rooms.attachPeer(token, new TestSocket())).toBe('peer already connected');
  });

  test('a session receives no messages from the backend and is not counted as a recipient', async () => {
    const { session } = await opened();
    const ann = await node.join('kitchen');
    const message = { topic: 'poll', data: 'Tea?' };
    expect(await node.rooms.sendMessage('kitchen', message)).toEqual({ delivered: 1 });
    expect(await node.rooms.sendMessage('kitchen', { ...message, to: [session.peerId] })).toEqual({ delivered: 0 });
    await node.system.idle();
    expect(ann.socket.sent.at(-1)).toEqual({ type: 'roomMessage', message });
    expect(await node.rooms.askSession(session, say('here'), 'request-2')).toBe('here');
  });

  test('a session is replaced by the next session of its peer', async () => {
    const { session } = await opened();
    const next = { ...session, sessionId: 'next' };
    await node.rooms.openSession(next, JOIN, 'request-2');
    expect(await node.rooms.askSession(next, say('here'), 'request-3')).toBe('here');
    await expect(node.rooms.askSession(session, say('here'), 'request-4')).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
    expect(await status()).toEqual(['connected']);
  });

  test('a session is replaced even while it is being opened', async () => {
    const { session } = await newPeer();
    const next = { ...session, sessionId: 'next' };
    const openings = [session, next].map((each) => node.rooms.openSession(each, JOIN, 'request-1'));
    expect(await Promise.allSettled(openings)).toMatchObject([
      { status: 'rejected', reason: { code: 'PEER_NOT_FOUND' } },
      { status: 'fulfilled' },
    ]);
    await expect(node.rooms.askSession(session, say('here'), 'request-2')).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
    expect(await node.rooms.askSession(next, say('here'), 'request-3')).toBe('here');
    expect(await status()).toEqual(['connected']);
  });

  test('a session ends when its media path falls silent, which a websocket survives', async () => {
    const { session } = await opened();
    const bob = await node.join('kitchen');
    for (const peerId of [session.peerId, bob.id]) {
      node.media.emit.get('kitchen')?.({ type: 'transportSilent', peerId });
    }
    await node.system.idle();
    expect(await status()).toEqual(['disconnected', 'connected']);
  });

  test('a session ends when it does not answer in time', async () => {
    const { session } = await opened();
    const answer = node.rooms.askSession(session, '[]', 'request-2');
    const refused = expect(answer).rejects.toMatchObject({ code: 'PEER_NOT_FOUND' });
    await node.system.idle();
    await node.advance(3);
    await refused;
    expect(await status()).toEqual(['disconnected']);
  });
});

test('a viewer sees the others but is invisible to them', async () => {
  const bob = await node.join('kitchen');
  const { session } = await opened(WATCH);
  const carl = await node.join('kitchen');
  expect(bob.socket.sent).not.toContainEqual(expect.objectContaining({ endpoint: { id: session.peerId } }));
  expect(carl.socket.sent[0]).toMatchObject({ type: 'joined', endpoints: [{ id: bob.id }] });
  await node.rooms.closeSession(session, 'request-2');
  await node.system.idle();
  const named = [...bob.socket.sent, ...carl.socket.sent].filter((sent) =>
    JSON.stringify(sent).includes(session.peerId),
  );
  expect(named).toEqual([]);
});

test('a busy room is not reported as missing', async () => {
  let prepared: () => void = () => undefined;
  const slow: ComponentKind = {
    type: 'file',
    requiresH264: false,
    limitPerRoom: null,
    prepare: () =>
      new Promise((resolve) => {
        prepared = () =>
          resolve({ properties: {}, subscribeMode: null, start: () => ({ close: async () => undefined }) });
      }),
  };
  await node.close();
  node = testNode({ componentKinds: [slow] });
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  const { session } = await newPeer();
  let code = '';
  const opening = node.rooms
    .openSession(session, JOIN, 'request-1')
    .catch((error: { code: string }) => (code = error.code));
  const adding = node.rooms.addComponent('kitchen', 'file', {});
  for (let step = 0; step < 50 && code === ''; step += 1) await node.advance(0.1);
  prepared();
  await node.advance(0.1);
  await Promise.all([opening, adding]);
  expect(code).toBe('OWNER_UNREACHABLE');
});
