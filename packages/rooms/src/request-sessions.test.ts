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

/** Opens a session that answers with the room's reply to its join request. */
async function opened(request = JOIN) {
  const added = await newPeer();
  const answer = JSON.parse(await node.rooms.openSession(added.session, request));
  expect(answer.type).toBe('joined');
  return added;
}

const transports = () =>
  node.media.commands.filter((line) => line.includes('Transport ')).map((line) => line.replace('kitchen: ', ''));
const status = async () => (await node.rooms.getRoom('kitchen')).peers.map((peer) => peer.status);

describe('request sessions', () => {
  test("connects the session's peer, answers requests in order, and disconnects the peer when the session ends", async () => {
    const { session } = await opened();
    expect(await status()).toEqual(['connected']);
    const answers = ['one', 'two'].map((text) => node.rooms.askSession(session, say(text)));
    expect(await Promise.all(answers)).toEqual(['one', 'two']);

    await node.rooms.closeSession(session);
    await node.system.idle();
    expect(await status()).toEqual(['disconnected']);
    expect(node.news().slice(-4)).toEqual([
      'peerAdded p1',
      'peerConnected p1',
      'peerMetadataUpdated p1',
      'peerDisconnected p1',
    ]);
    await expect(node.rooms.askSession(session, say('three'))).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
  });

  test("accepts a session's id only from its own peer", async () => {
    const { session } = await opened();
    const { peerId } = (await newPeer()).session;
    await expect(node.rooms.closeSession({ ...session, peerId })).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
  });

  test('refuses a session while the peer has a live websocket, and vice versa', async () => {
    const ann = await node.join('kitchen');
    const session = { roomId: 'kitchen', peerId: ann.id, sessionId: 's' };
    await expect(node.rooms.openSession(session, JOIN)).rejects.toMatchObject({ code: 'PEER_CONNECTED' });

    const { token } = await opened();
    expect(await node.rooms.attachPeer(token, new TestSocket())).toBe('peer already connected');
  });

  test('sends a session no messages from the backend and does not count it as a recipient', async () => {
    const { session } = await opened();
    const ann = await node.join('kitchen');
    const message = { topic: 'poll', data: 'Tea?' };
    expect(await node.rooms.sendMessage('kitchen', message)).toEqual({ delivered: 1 });
    expect(await node.rooms.sendMessage('kitchen', { ...message, to: [session.peerId] })).toEqual({ delivered: 0 });
    await node.system.idle();
    expect(ann.socket.sent.at(-1)).toEqual({ type: 'roomMessage', message });
    expect(await node.rooms.askSession(session, say('here'))).toBe('here');
  });

  test('replaces a session with the next session of its peer', async () => {
    const { session } = await opened();
    const next = { ...session, sessionId: 'next' };
    await node.rooms.openSession(next, JOIN);
    expect(await node.rooms.askSession(next, say('here'))).toBe('here');
    await expect(node.rooms.askSession(session, say('here'))).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
    expect(await status()).toEqual(['connected']);
  });

  test('replaces a session even while it is being opened', async () => {
    const { session } = await newPeer();
    const next = { ...session, sessionId: 'next' };
    const openings = [session, next].map((each) => node.rooms.openSession(each, JOIN));
    expect(await Promise.allSettled(openings)).toMatchObject([
      { status: 'rejected', reason: { code: 'PEER_NOT_FOUND' } },
      { status: 'fulfilled' },
    ]);
    await expect(node.rooms.askSession(session, say('here'))).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
    expect(await node.rooms.askSession(next, say('here'))).toBe('here');
    expect(await status()).toEqual(['connected']);
  });

  test('uses the transport of a relay that its client asked for, opened once however often it asks', async () => {
    const { session } = await newPeer();
    const ask = () => node.rooms.openRelay('kitchen', session.peerId);
    const [relay] = await Promise.all(Array.from({ length: 100 }, ask));
    expect(relay).toMatchObject({ username: expect.stringMatching(/^\d+:p1$/), password: expect.any(String) });
    expect(await status()).toEqual(['disconnected']);
    await node.rooms.openSession(session, JOIN);
    expect(await ask()).toEqual(relay);
    expect(transports()).toEqual(['openTransport p1']);

    await node.rooms.closeSession(session);
    await node.system.idle();
    expect(transports()).toEqual(['openTransport p1', 'closeTransport p1']);
  });

  test('closes the transport of a relay 30 s after the last request for it, and opens another then', async () => {
    const { session } = await newPeer();
    await node.rooms.openRelay('kitchen', session.peerId);
    await node.advance(20);
    await node.rooms.openRelay('kitchen', session.peerId);
    await node.advance(29);
    expect(transports()).toEqual(['openTransport p1']);
    await node.advance(2);
    expect(transports()).toEqual(['openTransport p1', 'closeTransport p1']);
    await node.rooms.openSession(session, JOIN);
    await node.advance(60);
    expect(transports()).toEqual(['openTransport p1', 'closeTransport p1', 'openTransport p1']);
  });

  test('closes the transport of an unused relay with its peer, and refuses one for a removed peer', async () => {
    const { session } = await newPeer();
    await node.rooms.openRelay('kitchen', session.peerId);
    await node.rooms.removePeer('kitchen', session.peerId);
    await node.system.idle();
    expect(transports().at(-1)).toBe('closeTransport p1');
    await expect(node.rooms.openRelay('kitchen', session.peerId)).rejects.toMatchObject({ code: 'PEER_NOT_FOUND' });
  });

  test('ends a session when its media path falls silent, unlike a websocket', async () => {
    const { session } = await opened();
    const bob = await node.join('kitchen');
    for (const peerId of [session.peerId, bob.id]) {
      node.media.emit.get('kitchen')?.({ type: 'transportSilent', peerId });
    }
    await node.system.idle();
    expect(await status()).toEqual(['disconnected', 'connected']);
  });

  test('ends a session that does not answer in time', async () => {
    const { session } = await opened();
    const answer = node.rooms.askSession(session, '[]');
    const refused = expect(answer).rejects.toMatchObject({ code: 'PEER_NOT_FOUND' });
    await node.system.idle();
    await node.advance(3);
    await refused;
    expect(await status()).toEqual(['disconnected']);
  });
});

test('shows a viewer the others but hides it from them', async () => {
  const bob = await node.join('kitchen');
  const { session } = await opened(WATCH);
  const carl = await node.join('kitchen');
  expect(bob.socket.sent).not.toContainEqual(expect.objectContaining({ endpoint: { id: session.peerId } }));
  expect(carl.socket.sent[0]).toMatchObject({ type: 'joined', endpoints: [{ id: bob.id }] });
  await node.rooms.closeSession(session);
  await node.system.idle();
  const named = [...bob.socket.sent, ...carl.socket.sent].filter((sent) =>
    JSON.stringify(sent).includes(session.peerId),
  );
  expect(named).toEqual([]);
});

test('does not report a busy room as missing', async () => {
  let prepared: () => void = () => undefined;
  const slow: ComponentKind = {
    type: 'file',
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
  const opening = node.rooms.openSession(session, JOIN).catch((error: { code: string }) => (code = error.code));
  const adding = node.rooms.addComponent('kitchen', 'file', {});
  for (let step = 0; step < 50 && code === ''; step += 1) await node.advance(0.1);
  prepared();
  await node.advance(0.1);
  await Promise.all([opening, adding]);
  expect(code).toBe('OWNER_UNREACHABLE');
});
