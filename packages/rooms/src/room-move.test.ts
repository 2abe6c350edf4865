// A room that leaves one node and is continued by another.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { MediaRoomEvent } from '@bloom/sfu';
import { defaultRoomConfig, type RoomConfig } from './room-service.js';
import type { RoomRef } from './room/room-messages.js';
import { moveKitchen, testNode, videoTrack, type TestNode } from './testing/index.js';

let from: TestNode;
let to: TestNode;
beforeEach(() => {
  from = testNode();
  to = testNode();
});
afterEach(() => Promise.all([from.close(), to.close()]));

const open = (config: Partial<RoomConfig> = {}) =>
  from.host.createRoom({ ...defaultRoomConfig, ...config, roomId: 'kitchen' });

const move = () => moveKitchen(from, to);

const stay = (reason: string) => ({
  offer: async () => reason,
  given: () => Promise.reject(new Error('not given')),
  over: () => undefined,
});

describe('a room that moves', () => {
  test('is the same room elsewhere, and nothing is published about it', async () => {
    await open({ maxPeers: 7, peerlessPurgeTimeout: 60 });
    await from.rooms.updateRoom('kitchen', { metadata: { colour: 'blue' } });
    const ann = await from.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1', { metadata: 'camera' })] });
    await from.rooms.updatePeer('kitchen', ann.id, { metadata: 'a speaker', permissions: { publish: ['video'] } });
    await from.rooms.addPeer('kitchen', { metadata: 'absent' });
    await from.system.idle();
    const before = { view: from.host.view('kitchen'), createdAt: from.host.createdAt('kitchen') };
    from.news();
    await to.advance(5);
    await move();
    expect({ view: to.host.view('kitchen'), createdAt: to.host.createdAt('kitchen') }).toEqual(before);
    expect(from.host.view('kitchen')).toBeUndefined();
    expect([...from.news(), ...to.news()]).toEqual([]);
  });

  test('sends its clients to the new node with a close code that lets them come back', async () => {
    await open();
    const ann = await from.join('kitchen');
    await move();
    await from.system.idle();
    expect(ann.socket.closed).toBe('1012 Room moved');
  });

  test('stays, unchanged, when the other node refuses it', async () => {
    await open();
    const ann = await from.join('kitchen');
    expect(await from.host.giveRoom('kitchen', stay('b is full'))).toBe('b is full');
    expect(ann.socket.closed).toBeUndefined();
    await ann.act({ type: 'setMetadata', metadata: 'still here' });
    expect(from.host.view('kitchen')?.peers[0]?.metadata).toBe('still here');
  });

  test('handles requests that arrive during a refused move afterwards, in order', async () => {
    await open();
    let refuse: (reason: string) => void = () => undefined;
    const offered = new Promise<string>((resolve) => (refuse = resolve));
    const moved = from.host.giveRoom('kitchen', { ...stay(''), offer: () => offered });
    const updates = [1, 2].map((maxPeers) => from.rooms.updateRoom('kitchen', { maxPeers }));
    refuse('too slow');
    await moved;
    expect((await Promise.all(updates)).map(({ config }) => config.maxPeers)).toEqual([1, 2]);
  });

  test('has crashed when it is lost on the way', async () => {
    await open();
    const ann = await from.join('kitchen');
    from.news();
    const lost = {
      offer: async () => null,
      given: () => Promise.reject(new Error('b has died')),
      over: () => undefined,
    };
    expect(await from.host.giveRoom('kitchen', lost)).toBeNull();
    await from.system.idle();
    expect(from.news()).toEqual([`peerDisconnected ${ann.id}`, 'roomCrashed']);
    expect(from.host.relayRef('kitchen')).toBeUndefined();
  });

  test('has not crashed as far as its former node knows when it may run on a node that is cut off', async () => {
    await open();
    await from.join('kitchen');
    from.news();
    const parted = { offer: async () => null, given: async () => undefined, over: () => undefined };
    expect(await from.host.giveRoom('kitchen', parted)).toBeNull();
    await from.system.idle();
    expect(from.news()).toEqual([]);
    expect(from.host.relayRef('kitchen')).toBeUndefined();
  });

  test.each([
    ['publishes', false, ['held']],
    ['forgets, if its standby has taken it over,', true, []],
  ])('%s what was held back for it', async (_what, isTaken, expected) => {
    await open();
    const published: string[] = [];
    const { fence } = from.host;
    let isFenced = true;
    fence.watcher = { changed: () => undefined, isFenced: () => isFenced };
    fence.pass({ type: 'peerAdded', roomId: 'kitchen', peerId: 'p' }, () => void published.push('held'));
    isFenced = false;
    const carry = { isTaken, offer: async () => null, given: async () => undefined, over: () => undefined };
    expect(await from.host.giveRoom('kitchen', carry)).toBeNull();
    fence.release('kitchen');
    expect(published).toEqual(expected);
  });

  test('is reported to its new node with the number of its peers', async () => {
    const moved: string[] = [];
    await to.close();
    to = testNode({ moved: (way, { roomId, peers }) => moved.push(`${roomId} ${way} ${peers}`) });
    await open();
    await from.join('kitchen');
    await from.rooms.addPeer('kitchen', {});
    await move();
    expect(moved).toEqual(['kitchen here 2']);
  });

  test('keeps its time without peers', async () => {
    await open({ peerlessPurgeTimeout: 60 });
    await from.advance(50);
    await move();
    await to.advance(9);
    expect(to.host.view('kitchen')).toBeDefined();
    await to.advance(2);
    expect(to.host.view('kitchen')).toBeUndefined();
    expect(to.news()).toEqual(['roomDeleted']);
  });

  test('counts the uses of invitations on', async () => {
    await open();
    const invitation = { id: 'i', uses: 2, createdAt: from.host.createdAt('kitchen') ?? 0, expiresAt: 1e12 };
    await from.rooms.addGuest('kitchen', { invitation, options: {} });
    await move();
    // Takes the id of the guest that has moved here: only in tests do two nodes generate the same.
    await to.host.createRoom(defaultRoomConfig);
    await to.rooms.addGuest('kitchen', { invitation, options: {} });
    await expect(to.rooms.addGuest('kitchen', { invitation, options: {} })).rejects.toMatchObject({
      code: 'INVITATION_USED',
    });
  });

  test('reserves its id while it is held, and gives it up when it does not come', async () => {
    const config = { ...defaultRoomConfig, roomId: 'kitchen' };
    const held = await to.host.holdRoom({ config }, 'from');
    await expect(to.host.createRoom(config)).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    expect(to.host.roomRef('kitchen')).toBeUndefined();
    await held.drop();
    expect(to.host.load().rooms).toBe(0);
    await to.host.createRoom(config);
    expect(to.news()).toEqual(['roomCreated']);
  });
});

describe('a node that ends', () => {
  const hold = async () => {
    const config = { ...defaultRoomConfig, roomId: 'kitchen' };
    const held = await to.host.holdRoom({ config }, 'from');
    return () => held.open({ config, peers: [], invitations: [], peerlessMs: null }, 1);
  };

  test('waits 1.5 s for a room for which it holds a place, and ends it', async () => {
    const take = await hold();
    const ended = to.host.deleteAll();
    await to.advance(1.4);
    expect(await take()).toBeDefined();
    await ended;
    expect(to.news()).toEqual(['roomDeleted']);
  });

  test('ends a room that has moved to it at once, whatever else it holds', async () => {
    await (await hold())();
    await to.host.holdRoom({ config: { ...defaultRoomConfig, roomId: 'yard' } }, 'from');
    const ended = to.host.deleteAll();
    await to.system.idle();
    expect(to.news()).toEqual(['roomDeleted']);
    await to.advance(1.5);
    await ended;
  });

  test('refuses a room for which it held a place, so that its former node reports its end', async () => {
    const take = await hold();
    const ended = to.host.deleteAll();
    await to.advance(1.5);
    await ended;
    await expect(take()).rejects.toMatchObject({ code: 'DRAINING' });
    expect(to.news()).toEqual([]);
  });

  test('ends a room that is just moving to it', async () => {
    const take = await hold();
    const taken = take();
    await to.host.deleteAll();
    await taken;
    expect(to.news()).toEqual(['roomDeleted']);
  });
});

describe('a person of a room that has moved', () => {
  test('who comes back within 10 s with the same tracks causes no event', async () => {
    await open();
    const ann = await from.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await move();
    await to.advance(9);
    const back = await to.connect(ann.token);
    await back.act({ type: 'join', metadata: { name: 'Ann' } }, { type: 'publish', tracks: [videoTrack('t1')] });
    await to.advance(5);
    expect(to.news()).toEqual([]);
    await back.detach();
    expect(to.news()).toEqual([`peerDisconnected ${ann.id}`, `trackRemoved ${ann.id}/t1`]);
  });

  test('who publishes the same track under another id keeps its former one, and the mute of the backend', async () => {
    await open();
    const ann = await from.join('kitchen');
    const { token } = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1', { metadata: 'camera' })] });
    await from.rooms.muteTrack('kitchen', { peerId: ann.id, trackId: 't1', muted: true });
    await move();
    const bob = await to.connect(token);
    const dying = await to.connect(ann.token);
    await dying.detach();
    await bob.act({ type: 'join', metadata: null });
    const back = await to.connect(ann.token);
    to.news();
    const again = videoTrack('t2', { metadata: 'camera' });
    await back.act({ type: 'join', metadata: null }, { type: 'publish', tracks: [again] });
    await to.advance(11);
    expect(to.news()).toEqual([]);
    expect(to.host.view('kitchen')?.peers[0]?.tracks).toEqual([
      { id: 't1', type: 'video', metadata: 'camera', muted: true },
    ]);
    expect(back.socket.sent).toContainEqual({ type: 'trackMutedByServer', trackId: 't2', muted: true });
    expect(bob.socket.sent).toContainEqual({
      type: 'tracksAdded',
      endpointId: ann.id,
      tracks: [{ ...again, trackId: 't1' }],
    });
    await to.rooms.removeTrack('kitchen', { peerId: ann.id, trackId: 't1' });
    await to.system.idle();
    expect(back.socket.sent).toContainEqual({ type: 'trackRemovedByServer', trackId: 't2' });
  });

  test('who does not come back is disconnected once, 10 s later, and removed in time', async () => {
    await open({ peerDisconnectedTimeout: 30 });
    const ann = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await move();
    await to.advance(9.9);
    expect(to.news()).toEqual([]);
    await to.advance(0.2);
    expect(to.news()).toEqual([`peerDisconnected ${ann.id}`, `trackRemoved ${ann.id}/t1`]);
    await to.advance(31);
    expect(to.news()).toEqual([`peerDeleted ${ann.id}`]);
  });

  test('who came as a guest is the same peer again, as long as the room expects it', async () => {
    await open({ maxPeers: 1 });
    const createdAt = from.host.createdAt('kitchen') ?? 0;
    const guest = {
      invitation: { id: 'livekit', uses: 0, createdAt, expiresAt: createdAt },
      options: { metadata: { identity: 'ann' } },
    };
    const { peer, token } = await from.rooms.addGuest('kitchen', guest);
    const ann = await from.connect(token);
    await ann.act({ type: 'join', metadata: null });
    from.news();
    await move();
    const again = await to.rooms.addGuest('kitchen', { ...guest, returns: peer.id });
    expect(again.peer).toEqual({ ...peer, status: 'connected' });
    const back = await to.connect(again.token);
    await back.act({ type: 'join', metadata: null });
    await to.advance(11);
    expect(to.news()).toEqual([]);
    await expect(to.rooms.addGuest('kitchen', { ...guest, returns: peer.id })).rejects.toMatchObject({
      code: 'PEER_LIMIT',
    });
  });

  test('whose first connection dies before the client has joined is still expected', async () => {
    await open();
    const ann = await from.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await move();
    const given = await to.connect(ann.token);
    await given.detach();
    const back = await to.connect(ann.token);
    await back.act({ type: 'join', metadata: { name: 'Ann' } }, { type: 'publish', tracks: [videoTrack('t1')] });
    await to.advance(11);
    expect(to.news()).toEqual([]);
  });

  test('whose client dies over and over before it has joined is disconnected once, 10 s after the move', async () => {
    await open({ peerDisconnectedTimeout: 3 });
    const ann = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await move();
    for (const seconds of [3, 3]) {
      await (await to.connect(ann.token)).detach();
      await to.advance(seconds);
    }
    expect(to.news()).toEqual([]);
    await to.advance(5);
    expect(to.news()).toEqual([`peerDisconnected ${ann.id}`, `trackRemoved ${ann.id}/t1`]);
    await to.advance(3);
    expect(to.news()).toEqual([`peerDeleted ${ann.id}`]);
  });

  test('who publishes other tracks than before removes the earlier ones after 10 s', async () => {
    await open();
    const ann = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await move();
    const back = await to.connect(ann.token);
    const screen = videoTrack('t2', { metadata: 'screen' });
    await back.act({ type: 'join', metadata: 'new' }, { type: 'publish', tracks: [screen] });
    await to.advance(11);
    expect(to.news()).toEqual([
      `peerMetadataUpdated ${ann.id}`,
      `trackAdded ${ann.id}/t2`,
      `trackRemoved ${ann.id}/t1`,
    ]);
  });

  test('who was disconnected before has the rest of the time to come back', async () => {
    await open({ peerDisconnectedTimeout: 30 });
    const { peer } = await from.rooms.addPeer('kitchen', {});
    await from.advance(25);
    await move();
    await to.advance(4);
    expect(to.news()).toEqual([]);
    await to.advance(2);
    expect(to.news()).toEqual([`peerDeleted ${peer.id}`]);
  });

  test('stays muted by the backend', async () => {
    await open();
    const ann = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await from.rooms.muteTrack('kitchen', { peerId: ann.id, trackId: 't1', muted: true });
    await move();
    const back = await to.connect(ann.token);
    to.media.commands.length = 0;
    await back.act({ type: 'join', metadata: null }, { type: 'publish', tracks: [videoTrack('t1')] });
    expect(to.media.commands).toContain(`kitchen: blocked ${ann.id} t1 true`);
    expect(back.socket.sent).toContainEqual({ type: 'trackMutedByServer', trackId: 't1', muted: true });
    expect(to.host.view('kitchen')?.peers[0]?.tracks[0]?.muted).toBe(true);
  });

  test('cannot have a track taken away by another peer that publishes its id first', async () => {
    await open();
    const ann = await from.join('kitchen');
    const eve = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await move();
    const evil = await to.connect(eve.token);
    await evil.act({ type: 'join', metadata: null }, { type: 'publish', tracks: [videoTrack('t1')] });
    expect(evil.socket.sent).toContainEqual({ type: 'trackRemovedByServer', trackId: 't1' });
  });

  test('can be removed and muted before coming back', async () => {
    await open();
    const ann = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    await move();
    expect(await to.rooms.muteTrack('kitchen', { peerId: ann.id, trackId: 't1', muted: true })).toMatchObject({
      muted: true,
    });
    await to.rooms.removeTrack('kitchen', { peerId: ann.id, trackId: 't2' });
    await to.rooms.removePeer('kitchen', ann.id);
    expect(to.news()).toEqual([
      `trackRemoved ${ann.id}/t2`,
      `trackRemoved ${ann.id}/t1`,
      `peerDisconnected ${ann.id}`,
      `peerDeleted ${ann.id}`,
    ]);
  });

  test('gets the last 16 messages that the backend has sent meanwhile, once', async () => {
    await open();
    const ann = await from.join('kitchen');
    await move();
    for (let data = 0; data < 17; data += 1)
      expect(await to.rooms.sendMessage('kitchen', { topic: 'news', data })).toEqual({ delivered: 0 });
    const messagesTo = async (): Promise<unknown[]> => {
      const back = await to.connect(ann.token);
      await back.act({ type: 'join', metadata: null });
      await back.detach();
      return back.socket.sent.filter((sent) => (sent as { type: string }).type === 'roomMessage');
    };
    const sent = Array.from({ length: 16 }, (_, i) => ({
      type: 'roomMessage',
      message: { topic: 'news', data: i + 1 },
    }));
    expect(await messagesTo()).toEqual(sent);
    expect(await messagesTo()).toEqual([]);
  });

  test('counts as load, so that the next room goes elsewhere', async () => {
    await open();
    const ann = await from.join('kitchen');
    await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    const { forwardedTracks } = from.host.load();
    await move();
    expect(to.host.load()).toEqual({ forwardedTracks, rooms: 1 });
    expect(from.host.load()).toEqual({ forwardedTracks: 0, rooms: 0 });
  });
});

test('a room that has moved does not end with its former node', async () => {
  await open();
  await from.host.createRoom({ ...defaultRoomConfig, roomId: 'elsewhere' });
  const target = from.host.roomRef('elsewhere') as RoomRef;
  let accept: (answer: null) => void = () => undefined;
  const offered = new Promise<null>((resolve) => (accept = resolve));
  const carry = { offer: () => offered, given: async () => target, over: () => undefined };
  const moved = from.host.giveRoom('kitchen', carry);
  const former = from.host.roomRef('kitchen') as RoomRef;
  // Arrives while the room is frozen.
  const end = from.system.call(former, { type: 'deleteRoom', why: 'node_closing' });
  accept(null);
  expect(await moved).toBeNull();
  expect(await end).toMatchObject({ ok: true });
  expect(from.host.view('elsewhere')).toBeDefined();
});

test('a message to the former actor of a room reaches the room', async () => {
  await open();
  const former = from.host.roomRef('kitchen') as RoomRef;
  await from.host.createRoom({ ...defaultRoomConfig, roomId: 'elsewhere' });
  const target = from.host.roomRef('elsewhere') as RoomRef;
  let over = false;
  const carry = { offer: async () => null, given: async () => target, over: () => void (over = true) };
  await from.host.giveRoom('kitchen', carry);
  const call = from.system.call(former, { type: 'updateRoom', changes: { maxPeers: 3 } });
  expect(await call).toMatchObject({ ok: true, value: { id: 'elsewhere', config: { maxPeers: 3 } } });
  await from.host.deleteRoom('elsewhere');
  await from.system.idle();
  expect(over).toBe(true);
  await expect(from.system.call(former, { type: 'getRoom' })).rejects.toMatchObject({ code: 'NO_PROCESS' });
});

test('what a client sent while the room was frozen is reported by the new owner', async () => {
  await open({ dataEvents: ['chat'] });
  await from.host.createRoom({ ...defaultRoomConfig, roomId: 'elsewhere' });
  const target = from.host.roomRef('elsewhere') as RoomRef;
  from.news();
  const carry = {
    offer: async () => {
      const event: MediaRoomEvent = { type: 'dataMessage', peerId: 'ann', label: 'chat', to: [], data: 'hello' };
      from.media.emit.get('kitchen')?.(event);
      return null;
    },
    given: async () => target,
    over: () => undefined,
  };
  expect(await from.host.giveRoom('kitchen', carry)).toBeNull();
  await from.system.idle();
  expect(from.notifications.filter(({ type }) => type === 'dataMessage')).toEqual([
    { type: 'dataMessage', roomId: 'elsewhere', peerId: 'ann', label: 'chat', to: [], data: 'hello' },
  ]);
});

test('what waited 3.2 s for a room that moves is refused, and does not happen when it runs at last', async () => {
  await open();
  const former = from.host.roomRef('kitchen') as RoomRef;
  await from.host.createRoom({ ...defaultRoomConfig, roomId: 'elsewhere' });
  let opened: (ref: RoomRef) => void = () => undefined;
  const target = new Promise<RoomRef>((resolve) => (opened = resolve));
  await from.host.giveRoom('kitchen', { offer: async () => null, given: () => target, over: () => undefined });
  const update = from.system.call(former, { type: 'updateRoom', changes: { maxPeers: 3 } }, 4_000);
  const request = { peerId: 'nobody', socket: former as never, client: 'sdk', replaces: null } as const;
  const attach = from.system.call(former, { type: 'attach', ...request }, 4_000);
  const late = expect(attach).rejects.toMatchObject({ code: 'TIMEOUT' });
  await from.system.idle();
  await from.advance(3.3);
  opened(from.host.roomRef('elsewhere') as RoomRef);
  await from.advance(1);
  expect(await update).toMatchObject({ ok: false, code: 'OWNER_UNREACHABLE' });
  await late;
  expect(from.host.view('elsewhere')?.config.maxPeers).toBeNull();
});
