// Rooms that move between nodes over real connections. The simulation runs what can go wrong on the way.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type ActorSystem, connectActors, openActorSystem } from '@bloom/actors';
import { type DistributionNode, PROTOCOLS } from '@bloom/distribution';
import { type LogFields, silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { RoomHost } from '../room-host.js';
import { defaultRoomConfig, type RoomConfig } from '../room-service.js';
import type { ComponentKind } from '../room/component-kind.js';
import type { RoomRef } from '../room/room-messages.js';
import { MAX_SNAPSHOT } from '../room/room-snapshot.js';
import { RoomRouter } from '../room-router.js';
import { scriptedSession, TestMedia, TestSocket } from '../testing/index.js';
import type { ClusterPort } from './cluster-port.js';
import { createClusterPort, followMembers } from './distributed-port.js';
import { RoomRegistry } from './room-registry.js';

interface Member {
  name: string;
  node: DistributionNode;
  system: ActorSystem;
  host: RoomHost;
  registry: RoomRegistry;
  rooms: RoomRouter;
  port: ClusterPort;
  news: string[];
  lines: [string, LogFields | undefined][];
  stop: () => Promise<void>;
}

const FILE: ComponentKind = {
  type: 'file',
  limitPerRoom: null,
  prepare: async () => ({
    properties: {},
    subscribeMode: null,
    start: () => ({ close: async () => undefined }),
  }),
};

/** Runs on every node, and can move. */
const PHONE: ComponentKind = {
  ...FILE,
  type: 'sip',
  prepare: async () => ({
    properties: {},
    subscribeMode: 'auto',
    start: () => ({ progress: () => ({}), close: async () => undefined }),
  }),
};

async function startMember(alive: string, mapperPort: number, protocols = PROTOCOLS): Promise<Member> {
  const name = `${alive}@127.0.0.1`;
  const news: string[] = [];
  const lines: Member['lines'] = [];
  const note = (event: string, fields?: LogFields): void => void lines.push([event, fields]);
  const log = { ...silentLog, info: note, warn: note };
  const system = openActorSystem({ log: silentLog });
  const remote = connectActors(system, { log: silentLog });
  const secretKeyBase = 'a secret for tests';
  const host = new RoomHost({
    system,
    engine: new TestMedia(),
    createSession: scriptedSession,
    events: (notification) => {
      registry.observe(notification);
      news.push(`${notification.type} ${notification.roomId}`);
    },
    log: silentLog,
    address: `${alive}.example:5002`,
    secretKeyBase,
    webrtcEnabled: true,
    componentKinds: [FILE, PHONE],
  });
  const port = createClusterPort({ system, remote, self: name });
  const registry: RoomRegistry = new RoomRegistry({ system, port, host, log });
  const rooms = new RoomRouter({ system, host, registry, log: silentLog, secretKeyBase });
  const node = await remote.start({
    name,
    mode: 'name',
    cookie: 'c',
    mapper: { port: mapperPort },
    spoken: { release: '0.9.0', protocols },
    log: silentLog,
  });
  followMembers(node, registry);
  const stop = async (): Promise<void> => {
    await registry.close();
    await remote.close();
    await system.close();
  };

  return { name, node, system, host, registry, rooms, port, news, lines, stop };
}

let mapper: PortMapperServer;
let members: Member[];
let a: Member;
let b: Member;
let c: Member;

beforeAll(async () => {
  mapper = await PortMapperServer.open({ port: 0, log: silentLog });
});
afterAll(() => mapper.close());

beforeEach(async () => {
  members = [];
  for (const alive of ['a', 'b', 'c']) members.push(await startMember(alive, mapper.port));
  [a, b, c] = members as [Member, Member, Member];
  await join(members);
});
afterEach(() => Promise.all(members.map(({ stop }) => stop())));

async function join(all: readonly Member[]): Promise<void> {
  const names = all.map(({ name }) => name);
  for (const { node } of all) node.seed(names);
  await until(() => all.every(({ port }) => port.members().length === all.length - 1));
}

const COMPONENT = { id: 'f', type: 'file', options: {}, properties: {}, origins: [], tracks: [], progress: {} };
const LIMIT = { timeoutMs: 4_000 };

const open = (config: Partial<RoomConfig> = {}) =>
  a.host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', ...config });

/** Moves the room away from a, and returns the node that has it then. */
async function move(): Promise<Member> {
  expect(await a.registry.departures.move('kitchen')).toBeNull();
  const has = ({ host }: Member): boolean => host.view('kitchen') !== undefined;
  await until(() => [b, c].some(has));

  return has(b) ? b : c;
}

describe('a moved room', () => {
  test('answers through every node, and nothing is published', async () => {
    await open();
    const { peer } = await a.rooms.addPeer('kitchen', {});
    a.news.length = 0;
    const owner = await move();
    expect(owner.host.createdAt('kitchen')).toBe(owner.registry.directory.find('kitchen')?.createdAt);
    for (const { rooms } of members)
      expect((await rooms.getRoom('kitchen')).peers.map(({ id }) => id)).toEqual([peer.id]);
    for (const { rooms } of members) await rooms.updateRoom('kitchen', { maxPeers: 4 });
    expect([...a.news, ...b.news, ...c.news]).toEqual([]);
  });

  test('takes back its people by their tokens, through its former node too', async () => {
    await open();
    const { token } = await a.rooms.addPeer('kitchen', {});
    const socket = new TestSocket();
    await a.rooms.attachPeer(token, socket);
    a.news.length = 0;
    await move();
    await until(() => socket.closed !== undefined);
    expect(socket.closed).toBe('1012 Room moved');
    const again = new TestSocket();
    expect(typeof (await a.rooms.attachPeer(token, again))).toBe('object');
    expect([...a.news, ...b.news, ...c.news]).toEqual([]);
  });

  test('keeps its id, and gives it back when it ends', async () => {
    await open();
    await move();
    for (const { rooms } of members)
      await expect(rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' })).rejects.toMatchObject({
        code: 'ROOM_EXISTS',
      });
    await c.rooms.deleteRoom('kitchen');
    await until(() => a.host.relayRef('kitchen') === undefined);
    await until(() => members.every(({ registry }) => registry.directory.find('kitchen') === undefined));
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  });

  test('keeps its id when its former node leaves before everybody has heard of the new owner', async () => {
    const ids = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'];
    for (const roomId of ids) await open({ roomId });
    const delayed = [b, c].map(({ port }) => {
      const cast = port.cast;
      port.cast = (node, message, requestId) => message.type === 'announce' || cast(node, message, requestId);
    });
    expect(delayed).toHaveLength(2);
    for (const roomId of ids) expect(await a.registry.departures.move(roomId)).toBeNull();
    await until(() => b.host.load().rooms + c.host.load().rooms === ids.length);
    members = [b, c];
    await a.stop();
    await until(() => b.port.members().length === 1);
    for (const roomId of ids)
      for (const { rooms } of members)
        await expect(rooms.createRoom({ ...defaultRoomConfig, roomId })).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
  });

  test('was placed by a decision that the former owner remembers', async () => {
    await open();
    const { name } = await move();
    expect(a.registry.decisions.at(-1)).toMatchObject({ roomId: 'kitchen', chosen: name });
  });
});

describe('a node that moves its rooms', () => {
  test('is empty soon, and the others share them', async () => {
    for (let i = 0; i < 20; i += 1) await a.host.createRoom({ ...defaultRoomConfig, roomId: `room-${i}` });
    a.host.drain('ordered');
    await a.registry.departures.moveAll(30_000);
    await until(() => b.host.load().rooms + c.host.load().rooms === 20);
    expect(a.host.load().rooms).toBe(0);
    expect(Math.abs(b.host.load().rooms - c.host.load().rooms)).toBeLessThanOrEqual(4);
  });

  test('moves a room with a component that another node can continue', async () => {
    await open();
    const { id } = await a.rooms.addComponent('kitchen', 'sip', {});
    const owner = await move();
    expect(owner.host.view('kitchen')?.components.map((component) => component.id)).toEqual([id]);
    expect([...a.news, ...b.news, ...c.news]).toEqual(['roomCreated kitchen']);
  });

  test('keeps a room with a component that cannot move, and says why once', async () => {
    await open();
    await a.rooms.addComponent('kitchen', 'file', {});
    await a.registry.departures.moveAll(1_500);
    expect(a.host.view('kitchen')?.components).toHaveLength(1);
    const reasons = a.lines.filter(([event]) => event === 'room.stays');
    expect(reasons).toEqual([['room.stays', { roomId: 'kitchen', reason: 'its file component cannot move' }]]);
    expect([...a.registry.departures.staying]).toEqual([['kitchen', 'its file component cannot move']]);
    await a.host.deleteRoom('kitchen');
    expect(a.registry.departures.staying.size).toBe(0);
  });

  test('takes no places for a room that stays or has ended', async () => {
    await open();
    await a.rooms.addComponent('kitchen', 'file', {});
    expect(await a.registry.departures.move('kitchen')).toBe('its file component cannot move');
    await a.host.createRoom({ ...defaultRoomConfig, roomId: 'yard' });
    const moving = a.registry.departures.move('yard');
    await a.host.deleteRoom('yard');
    expect(await moving).toBe('it has ended');
    const loads = await Promise.all([b, c].map(({ name }) => a.port.call(name, { type: 'load' }, LIMIT)));
    expect(loads.map(({ rooms }) => rooms)).toEqual([0, 0]);
  });

  test('keeps a room that no other node can take', async () => {
    await open();
    for (const { host } of [b, c]) host.drain('ordered');
    expect(await a.registry.departures.move('kitchen')).toBe('no other node can take it');
    expect(a.host.view('kitchen')).toBeDefined();
  });

  test('moves nothing while a member runs a release that does not know moves, and names it', async () => {
    const old = await startMember('old', mapper.port, { min: 1, max: 1 });
    members.push(old);
    await join(members);
    await open();
    const refusal = 'old@127.0.0.1 of release 0.9.0 does not know how rooms move';
    expect(a.registry.departures.refusal()).toBe(refusal);
    expect(await a.registry.departures.move('kitchen')).toBe(refusal);
    expect(a.host.view('kitchen')).toBeDefined();
  });
});

describe('an operator who moves one room', () => {
  test('sends it to the node that the order names, however busy that node is', async () => {
    await open();
    for (let i = 0; i < 3; i += 1) await c.host.createRoom({ ...defaultRoomConfig, roomId: `room-${i}` });
    expect(await a.registry.departures.moveTo('kitchen', c.name)).toMatchObject({
      outcome: 'moved',
      node: c.name,
    });
    expect(c.host.view('kitchen')).toBeDefined();
    expect(a.host.draining).toBe(false);
    const decision = a.registry.decisions.at(-1);
    expect(decision).toMatchObject({ roomId: 'kitchen', chosen: c.name, policy: 'ordered' });
    expect(decision?.verdicts).toEqual(
      new Map([
        [a.name, 'not ordered'],
        [b.name, 'not ordered'],
        [c.name, 'chosen'],
      ]),
    );
  });

  test('sends it to the best other node when the order names none', async () => {
    await open();
    await b.host.createRoom({ ...defaultRoomConfig, roomId: 'yard' });
    expect(await a.registry.departures.moveTo('kitchen', null)).toMatchObject({ outcome: 'moved', node: c.name });
  });

  test('hears why it stays', async () => {
    await open();
    const reasonFor = async (to: string | null): Promise<string> => {
      const moved = await a.registry.departures.moveTo('kitchen', to);
      return moved.outcome === 'stays' ? moved.reason : moved.outcome;
    };
    expect(await reasonFor(a.name)).toBe(`it is on ${a.name} already`);
    expect(await reasonFor('z@127.0.0.1')).toBe(`${a.name} has no link to z@127.0.0.1`);
    b.host.drain('ordered');
    expect(await reasonFor(b.name)).toBe(`${b.name} is draining`);
    await a.rooms.addComponent('kitchen', 'file', {});
    expect(await reasonFor(c.name)).toBe('its file component cannot move');
    await a.host.deleteRoom('kitchen');
    expect(await reasonFor(c.name)).toBe('it has ended');
  });

  test('hears that a node with no place left is full', async () => {
    await open();
    const seen = { forwardedTracks: 99, rooms: 9_999 };
    await Promise.all(Array.from({ length: 1_000 }, () => b.port.call(c.name, { type: 'reserve', seen }, LIMIT)));
    expect(await a.registry.departures.moveTo('kitchen', c.name)).toEqual({
      outcome: 'stays',
      reason: `${c.name} is full`,
    });
  });

  test('cannot send it back to a node that still passes messages on', async () => {
    await open();
    await a.registry.departures.moveTo('kitchen', b.name);
    const reason = 'it has left that node less than 10 s ago';
    expect(await b.registry.departures.moveTo('kitchen', a.name)).toEqual({ outcome: 'stays', reason });
  });

  test('moves it once when two orders come at the same time', async () => {
    await open();
    const orders = [b.name, c.name].map((to) => a.registry.departures.moveTo('kitchen', to));
    expect(await Promise.all(orders)).toEqual([
      { outcome: 'moved', node: b.name, ms: expect.any(Number) },
      { outcome: 'stays', reason: 'it is moving already' },
    ]);
    expect([b, c].map(({ host }) => host.view('kitchen') !== undefined)).toEqual([true, false]);
  });

  test('hears that the node has died on the way, and the room stays', async () => {
    await open();
    const { call } = a.port;
    a.port.call = (node, message, limit) => {
      const dead = message.type === 'offerRoom' ? members.pop()?.stop() : undefined;
      return Promise.resolve(dead).then(() => call(node, message, limit));
    };
    expect(await a.registry.departures.moveTo('kitchen', c.name)).toMatchObject({ outcome: 'stays' });
    expect(members).toEqual([a, b]);
    expect(a.host.view('kitchen')).toBeDefined();
  });
});

test('a node that has given a room does not wait at its end for a client that came during the move', async () => {
  await open();
  const { token } = await a.rooms.addPeer('kitchen', {});
  let attaching: Promise<unknown> = Promise.resolve();
  const stays = await a.host.giveRoom('kitchen', {
    offer: async (snapshot) => {
      attaching = a.rooms.attachPeer(token, new TestSocket());
      const held = await b.host.holdRoom(snapshot, 'a');
      await held.open(snapshot, 1);
      return null;
    },
    given: async () => (await a.port.call(b.name, { type: 'roomRef', roomId: 'kitchen' }, LIMIT)) as RoomRef,
    over: () => undefined,
  });
  expect(stays).toBeNull();
  expect(await attaching).toHaveProperty('receive');
  await a.host.deleteAll();
  expect((await b.rooms.getRoom('kitchen')).peers[0]?.status).toBe('connected');
});

test('a node that stops sends people of rooms elsewhere to other nodes, and nothing is published', async () => {
  await open();
  const { token } = await a.rooms.addPeer('kitchen', {});
  const socket = new TestSocket();
  await b.rooms.attachPeer(token, socket);
  await until(() => a.news.includes('peerConnected kitchen'));
  a.news.length = 0;
  await b.host.deleteAll();
  expect(socket.closed).toBe('1012 Node stopped');
  await until(async () => (await a.host.reports()).length === 0);
  expect(await c.rooms.attachPeer(token, new TestSocket())).toHaveProperty('receive');
  expect(a.news).toEqual([]);
  const late = new TestSocket();
  await b.rooms.attachPeer((await a.rooms.addPeer('kitchen', {})).token, late);
  expect(late.closed).toBe('1012 Node stopped');
});

describe('a member that lies', () => {
  const config = { ...defaultRoomConfig, roomId: 'kitchen' };
  const snapshot = JSON.stringify({ config, peers: [], invitations: [], peerlessMs: null });
  const withComponents = (components: unknown[]) => JSON.stringify({ ...JSON.parse(snapshot), components });
  const reserve = async (): Promise<string> => {
    const reserved = await a.port.call(b.name, { type: 'reserve', seen: { forwardedTracks: 0, rooms: 99 } }, LIMIT);
    if ('granted' in reserved) return reserved.granted;
    throw new Error('no place');
  };
  const offer = async (changes: object) =>
    a.port.call(
      b.name,
      {
        type: 'offerRoom',
        node: a.name,
        move: 'm',
        reservation: await reserve(),
        createdAt: a.host.createdAt('kitchen') ?? 1,
        epoch: 1,
        snapshot,
        ...changes,
      },
      LIMIT,
    );

  test.each([
    ['is too long', { snapshot: ' '.repeat(MAX_SNAPSHOT + 1) }],
    ['is no JSON', { snapshot: '{' }],
    ['is nested without end', { snapshot: '['.repeat(100_000) }],
    ['is no snapshot', { snapshot: '{"config":{}}' }],
    ['has components without end', { snapshot: withComponents(Array.from({ length: 1_001 }, () => COMPONENT)) }],
    ['has a component without options', { snapshot: withComponents([{ ...COMPONENT, options: null }]) }],
    ['has a component of the past', { snapshot: withComponents([{ ...COMPONENT, progress: { positionMs: -1 } }]) }],
    ['is no text', { snapshot: 7 }],
  ])('cannot offer a room whose state %s', async (_what, changes) => {
    await expect(offer(changes)).rejects.toMatchObject({ code: 'BAD_MESSAGE' });
    expect(b.host.load().rooms).toBe(0);
  });

  test.each([
    ['of another node', { node: 'c@127.0.0.1' }],
    ['that has moved a negative number of times', { epoch: -1 }],
  ])('cannot offer a room %s', async (_what, changes) => {
    await expect(offer(changes)).rejects.toMatchObject({ code: 'BAD_MESSAGE' });
  });

  test.each([
    ['that it has not announced', { snapshot: snapshot.replace('kitchen', 'yard') }],
    ['of another age', { createdAt: 1 }],
    ['that has moved more often', { epoch: 2 }],
  ])('cannot offer a room %s', async (_what, changes) => {
    await open();
    expect(await offer(changes)).toEqual({ refused: `${b.name} does not know this room at ${a.name}` });
    expect(b.host.load().rooms).toBe(0);
  });

  test('cannot offer a room without a reservation, or whose id exists', async () => {
    await open();
    expect(await offer({ reservation: 'none' })).toEqual({ refused: 'The reservation has expired' });
    await b.host.createRoom(config);
    expect(await offer({})).toMatchObject({ refused: expect.stringContaining('already exists') });
  });

  test('can neither take nor keep a room for the giver', async () => {
    await open();
    expect(await offer({})).toEqual({ accepted: true });
    const byC = { node: c.name, move: 'm' };
    expect(await c.port.call(b.name, { type: 'takeRoom', ...byC }, LIMIT)).toBeNull();
    c.port.cast(b.name, { type: 'keepRoom', ...byC });
    await expect(c.port.call(b.name, { type: 'takeRoom', node: a.name, move: 'm' }, LIMIT)).rejects.toMatchObject({
      code: 'BAD_MESSAGE',
    });
    expect(await a.port.call(b.name, { type: 'takeRoom', node: a.name, move: 'm' }, LIMIT)).not.toBeNull();
    expect(b.host.view('kitchen')).toBeDefined();
  });

  test('cannot report data of clients in another form than a former owner does', async () => {
    await open();
    await until(() => c.registry.directory.find('kitchen') !== undefined);
    const room = c.registry.directory.find('kitchen')?.ref as RoomRef;
    const data = { type: 'lateData', peerId: 'ann', label: 'chat', to: [], data: 'hello' } as const;
    a.news.length = 0;
    for (const wrong of [{ peerId: 7 }, { label: null }, { to: 'ann' }, { data: { deep: true } }, { data: 7 }])
      c.system.cast(room, { ...data, ...wrong } as never);
    c.system.cast(room, { ...data, to: [] });
    await until(() => a.news.length > 0);
    expect(a.news).toEqual(['dataMessage kitchen']);
  });

  test('loses its place when the giver does not know the move', async () => {
    await open();
    expect(await offer({})).toEqual({ accepted: true });
    expect(b.host.load().rooms).toBe(1);
    // Asked after 2 s, it says that it keeps the room: nothing is on its way.
    await until(() => b.host.load().rooms === 0);
    expect(await a.port.call(b.name, { type: 'takeRoom', node: a.name, move: 'm' }, LIMIT)).toBeNull();
  });

  test('cannot hold more than 32 places', async () => {
    const answers: object[] = [];
    for (let i = 0; i < 33; i += 1) {
      const room = { ...config, roomId: `room-${i}` };
      await a.host.createRoom(room);
      const named = JSON.stringify({ ...JSON.parse(snapshot), config: room });
      answers.push(await offer({ move: `m${i}`, createdAt: a.host.createdAt(room.roomId), snapshot: named }));
    }
    expect(answers.at(-2)).toEqual({ accepted: true });
    expect(answers.at(-1)).toEqual({ refused: `${b.name} holds 32 rooms already` });
  });

  test('learns nothing about moves to others', async () => {
    expect(await c.port.call(a.name, { type: 'moveState', node: c.name, move: 'm' }, LIMIT)).toBe('unknown');
    await expect(c.port.call(a.name, { type: 'moveState', node: b.name, move: 'm' }, LIMIT)).rejects.toMatchObject({
      code: 'BAD_MESSAGE',
    });
  });
});
