import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  connectActors,
  openActorSystem,
  type ActorSystem,
  type AnyRef,
  type Behaviour,
  type RemoteActors,
} from '@bloom/actors';
import { DistributionNode } from '@bloom/distribution';
import { TestWires } from '@bloom/distribution/testing';
import { silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { RoomHost } from '../room-host.js';
import { defaultRoomConfig } from '../room-service.js';
import { ROOM_SHAPES, type RoomProtocol } from '../room/room-messages.js';
import { RoomRouter } from '../room-router.js';
import { scriptedSession, TestMedia, TestSocket } from '../testing/index.js';
import { homesOf } from './claims.js';
import type { ClusterPort } from './cluster-port.js';
import { RoomRegistry } from './room-registry.js';
import { createClusterPort, followMembers } from './distributed-port.js';
import { NODE_ACTOR, NODE_SHAPES, type NodeProtocol } from './node-messages.js';

/** Megabytes of metadata are slow on a busy machine. */
const PATIENT_MS = 100_000;
jest.setTimeout(120_000);

interface Member {
  name: string;
  system: ActorSystem;
  remote: RemoteActors;
  node: DistributionNode;
  host: RoomHost;
  registry: RoomRegistry;
  rooms: RoomRouter;
  wires: TestWires;
  /** Takes the place of the time limits of its questions to other nodes. */
  patience: { ms: number | undefined };
  stop: () => Promise<void>;
}

const secretKeyBase = 'a secret for tests';

async function startMember(alive: string, mapperPort: number, seeds: readonly string[]): Promise<Member> {
  const name = `${alive}@127.0.0.1`;
  const system = openActorSystem({ log: silentLog });
  const remote = connectActors(system, { log: silentLog });
  const host = new RoomHost({
    system,
    engine: new TestMedia(),
    createSession: scriptedSession,
    events: (notification) => registry.observe(notification),
    log: silentLog,
    address: `${alive}.example:5002`,
    secretKeyBase,
    webrtcEnabled: true,
  });
  const patience: Member['patience'] = { ms: undefined };
  const port = createClusterPort({ system, remote, self: name });
  const registry = new RoomRegistry({
    system,
    port: {
      ...port,
      call: (to, message, options) =>
        port.call(to, message, { ...options, timeoutMs: patience.ms ?? options.timeoutMs }),
    },
    host,
    log: silentLog,
  });
  const rooms = new RoomRouter({ system, host, registry, log: silentLog, secretKeyBase });
  const wires = new TestWires();
  const node = await remote.start({
    name,
    mode: 'name',
    cookie: 'c',
    mapper: { port: mapperPort },
    world: wires.world,
    log: silentLog,
  });
  followMembers(node, registry);
  node.seed(seeds);
  const stop = async (): Promise<void> => {
    await remote.close();
    await system.close();
  };

  return { name, system, remote, node, host, registry, rooms, wires, patience, stop };
}

function portOf({ system, remote, name }: Member): ClusterPort {
  return createClusterPort({ system, remote, self: name });
}

describe('clusters over real connections', () => {
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
    a = await startMember('a', mapper.port, []);
    b = await startMember('b', mapper.port, [a.name]);
    c = await startMember('c', mapper.port, [a.name]);
    members = [a, b, c];
    await until(() => members.every(({ node }) => node.nodes().length === 2));
  });
  afterEach(async () => {
    for (const { stop } of members) await stop();
  });

  test('spreads rooms created through one node over all nodes', async () => {
    const addresses: string[] = [];
    for (let i = 0; i < 6; i++) addresses.push((await a.rooms.createRoom(defaultRoomConfig)).address);
    for (const { host } of members) expect(host.views().length).toBe(2);
    expect(new Set(addresses)).toEqual(new Set(['a.example:5002', 'b.example:5002', 'c.example:5002']));
    const { rooms, unreachable } = await b.rooms.listRooms('cluster');
    expect(rooms).toHaveLength(6);
    expect(unreachable).toEqual([]);
  });

  test('answers for any room on any node', async () => {
    const { room } = await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', maxPeers: 1 });
    expect(room.id).toBe('kitchen');
    for (const { rooms } of members) {
      expect(await rooms.getRoom('kitchen')).toMatchObject({ id: 'kitchen', config: { maxPeers: 1 } });
    }
    await c.rooms.addPeer('kitchen', {});
    await expect(b.rooms.addPeer('kitchen', {})).rejects.toMatchObject({ code: 'PEER_LIMIT' });
    await c.rooms.deleteRoom('kitchen');
    for (const { rooms } of members) {
      await expect(rooms.getRoom('kitchen')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    }
  });

  test("keeps a member's rooms and services running after a malformed message", async () => {
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    const owner = members.find(({ host }) => host.roomRef('kitchen') !== undefined) ?? a;
    const asker = owner === a ? b : a;
    const { counters } = owner.remote;
    for (let i = 0; i < 5; i += 1) {
      asker.system.cast(asker.remote.remote(owner.name, 'rooms', {}), { type: 'create' } as never);
      asker.system.cast(asker.remote.remote(owner.name, NODE_ACTOR, NODE_SHAPES), { type: 'reserve' } as never);
    }
    await until(() => counters.castsIn + counters.deadLetters >= 10);
    await owner.system.idle();
    expect(await asker.rooms.getRoom('kitchen')).toMatchObject({ id: 'kitchen' });
    expect(owner.system.info(owner.system.whereis(NODE_ACTOR)!)?.restarts).toBe(0);
  });

  test('logs a request id on every node that works on the request', async () => {
    for (let i = 0; i < 3; i++) {
      await a.rooms.forRequest(`create-${i}`).createRoom({ ...defaultRoomConfig, roomId: `room-${i}` });
    }
    const at = [0, 1, 2].find((i) => b.host.roomRef(`room-${i}`) !== undefined);
    const roomId = `room-${at}`;
    expect(a.registry.decisions.find((decision) => decision.roomId === roomId)?.requestId).toBe(`create-${at}`);
    const where = ({ system }: Member, id: string): string[] =>
      system.hops(id).map((hop) => `${hop.from} -> ${hop.where} ${hop.what}`);
    expect(where(b, `create-${at}`)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^a@127.0.0.1 -> .* create$/), 'rooms -> /rooms create']),
    );

    await a.rooms.forRequest('add').addPeer(roomId, {});
    expect(where(a, 'add')).toEqual([`null -> directory owner of ${roomId} is b@127.0.0.1`]);
    expect(where(b, 'add')).toEqual([`a@127.0.0.1 -> /rooms/${roomId} addPeer`]);
    expect(where(c, 'add')).toEqual([]);
  });

  test('resends announcements that a full link rejected once it accepts messages again', async () => {
    const roomId = Array.from({ length: 99 }, (_, i) => `room-${i}`).find(
      (id) => homesOf(id, [a.name, b.name, c.name])[0] === b.name,
    ) as string;
    const whileFull = async (act: () => Promise<unknown>): Promise<void> => {
      a.wires.pendingBytes = 9 * 1024 * 1024;
      await act();
      a.wires.pendingBytes = undefined;
    };
    await whileFull(() => a.host.createRoom({ ...defaultRoomConfig, roomId }));
    await until(() => [b, c].every(({ registry }) => registry.directory.find(roomId)?.node === a.name), 3_000);
    await expect(b.rooms.createRoom({ ...defaultRoomConfig, roomId })).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    await whileFull(() => a.host.deleteRoom(roomId));
    await until(() => [b, c].every(({ registry }) => registry.directory.find(roomId) === undefined), 3_000);
  });

  test('grants only one of two simultaneous creations of the same id on two nodes', async () => {
    for (let round = 0; round < 10; round++) {
      const config = { ...defaultRoomConfig, roomId: `room-${round}` };
      const both = await Promise.allSettled([b.rooms.createRoom(config), c.rooms.createRoom(config)]);
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    }
  });

  describe('websockets on another node than the room', () => {
    let socket: TestSocket;
    let elsewhere: Member;
    let owner: Member;
    let token: string;
    let attached: { receive: (text: string) => void; detach: (end: 'closed_by_client') => void };

    beforeEach(async () => {
      await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
      owner = members.find(({ host }) => host.views().length === 1) as Member;
      elsewhere = members.find((member) => member !== owner) as Member;
      ({ token } = await a.rooms.addPeer('hall', {}));
      socket = new TestSocket();
      const answer = await elsewhere.rooms.attachPeer(token, socket);
      if (typeof answer === 'string') throw new Error(answer);
      attached = answer;
      attached.receive(JSON.stringify([{ type: 'join', metadata: { name: 'ann', '\ud800': 1 } }]));
    });

    const status = () => owner.host.views()[0]?.peers[0]?.status;

    test('carries messages between a websocket on another node and its peer in both directions', async () => {
      await until(() => socket.sent.length > 0);
      expect(status()).toBe('connected');
      attached.receive(JSON.stringify([{ type: 'send', text: JSON.stringify({ back: 'ä' }) }]));
      await until(() => socket.sent.some((text) => JSON.stringify(text) === '{"back":"ä"}'));
    });

    test('keeps a second websocket from attaching to a peer with a live one on another node', async () => {
      const third = members.find((member) => member !== owner && member !== elsewhere) as Member;
      expect(await third.rooms.attachPeer(token, new TestSocket())).toBe('peer already connected');
      expect(socket.pings).toBe(1);
      socket.alive = false;
      expect(typeof (await third.rooms.attachPeer(token, new TestSocket()))).toBe('object');
      await until(() => socket.closed !== undefined);
    });

    test('delivers everything to a websocket that its node could not accept for a moment', async () => {
      await until(() => status() === 'connected');
      await until(() => socket.sent.length > 0);
      const before = socket.sent.length;
      owner.wires.pendingBytes = 9 * 1024 * 1024;
      for (let i = 0; i < 3; i++) attached.receive(JSON.stringify([{ type: 'send', text: `${i}` }]));
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(socket.sent.length).toBe(before);
      owner.wires.pendingBytes = undefined;
      await until(() => socket.sent.length === before + 3);
      expect(socket.sent.slice(before)).toEqual([0, 1, 2]);
      expect(socket.closed).toBeUndefined();
    });

    test('closes a websocket when its node stops accepting messages, and lets its client come back', async () => {
      await until(() => status() === 'connected');
      owner.wires.pendingBytes = 9 * 1024 * 1024;
      attached.receive(JSON.stringify([{ type: 'send', text: '{"lost":1}' }]));
      await until(() => socket.closed !== undefined);
      owner.wires.pendingBytes = undefined;
      expect(socket.closed).toBe('1011 Internal server error');
      expect(JSON.stringify(socket.sent)).not.toContain('lost');
      await until(() => status() === 'disconnected');
      expect(typeof (await elsewhere.rooms.attachPeer(token, new TestSocket()))).toBe('object');
    });

    test("closes a websocket that overflows its peer's mailbox, and lets its client come back", async () => {
      await until(() => status() === 'connected');
      const [peer] = owner.system.list({ limit: 1, match: (path) => path.includes('/peers/') });
      owner.system.suspend(peer?.ref as AnyRef);
      for (let i = 0; i < 11_000; i++) attached.receive('[]');
      await until(() => socket.closed !== undefined);
      expect(socket.closed).toBe('1011 Internal server error');
      owner.system.resume(peer?.ref as AnyRef);
      await until(() => status() === 'disconnected');
      expect(typeof (await elsewhere.rooms.attachPeer(token, new TestSocket()))).toBe('object');
    });

    test('closes a websocket on another node when its peer ends', async () => {
      await until(() => status() === 'connected');
      await a.rooms.deleteRoom('hall');
      await until(() => socket.closed !== undefined);
      expect(socket.closed).toBe('1000 Room stopped');
    });

    test('notifies the room when a websocket on another node closes', async () => {
      await until(() => status() === 'connected');
      attached.detach('closed_by_client');
      await until(() => status() === 'disconnected');
    });

    test('closes a websocket when the node of the room is lost', async () => {
      await until(() => status() === 'connected');
      await owner.stop();
      await until(() => socket.closed !== undefined);
      expect(socket.closed).toBe('1011 Internal server error');
    });

    test('lets a stopping node end its rooms, and sends the people of other rooms on', async () => {
      await until(() => status() === 'connected');
      await elsewhere.host.createRoom({ ...defaultRoomConfig, roomId: 'cellar' });
      let ended = false;
      void elsewhere.host.deleteAll().then(() => {
        ended = true;
      });
      await until(() => ended, 2_000);
      expect(elsewhere.host.views()).toEqual([]);
      expect(socket.closed).toBe('1012 Node stopped');
      expect(status()).toBe('connected');
    });

    test("treats the loss of a websocket's node as the loss of the websocket", async () => {
      await until(() => status() === 'connected');
      await elsewhere.stop();
      await until(() => status() === 'disconnected');
    });
  });

  test('shows a room on a node of the previous release', async () => {
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'old' });
    const owner = members.find(({ host }) => host.views().length === 1) as Member;
    const elsewhere = members.find((member) => member !== owner) as Member;
    const { load, roomRef } = NODE_SHAPES;
    const before: Behaviour<Pick<NodeProtocol, 'load' | 'roomRef'>, null> = {
      kind: 'rooms-node',
      shapes: { load, roomRef },
      init: () => null,
      handlers: {
        load: () => ({ forwardedTracks: 0, rooms: 1, draining: true }),
        roomRef: (_state, { roomId }) => owner.host.roomRef(roomId) ?? null,
      },
    };
    owner.system.unregister(NODE_ACTOR);
    owner.system.register(NODE_ACTOR, owner.system.spawn(before));
    expect(await elsewhere.rooms.getRoom('old')).toMatchObject({ id: 'old' });
  });

  test('shows metadata with more terms than a message may hold, without ending any connection', async () => {
    const { room } = await a.rooms.createRoom(defaultRoomConfig);
    const owner = members.find(({ host }) => host.views().length === 1) as Member;
    const elsewhere = members.find((member) => member !== owner) as Member;
    const metadata = Array.from({ length: 32_000 }, () => 0);
    for (let i = 0; i < 130; i++) await owner.rooms.addPeer(room.id, { metadata });
    let lost = 0;
    const count = (): void => void (lost += 1);
    elsewhere.node.subscribe({ nodedown: count });
    // The test checks messages, which are slow on a slow machine.
    elsewhere.patience.ms = PATIENT_MS;
    expect((await elsewhere.rooms.getRoom(room.id)).peers.length).toBe(130);
    const { rooms, unreachable } = await elsewhere.rooms.listRooms('cluster');
    expect(rooms.map(({ peers }) => peers.length)).toEqual([130]);
    expect(unreachable).toEqual([]);
    const ref = owner.remote.remote(elsewhere.name, NODE_ACTOR, NODE_SHAPES);
    const many = Array.from({ length: 4_000_000 }, () => 0) as unknown as string;
    expect(owner.system.cast<NodeProtocol>(ref, { type: 'withdraw', creation: many })).toBe(false);
    expect(lost).toBe(0);
  });

  test('keeps the link usable for other calls while it carries a room with much metadata', async () => {
    for (let i = 0; i < 3; i++) await a.rooms.createRoom({ ...defaultRoomConfig, roomId: `r${i}` });
    const [owner, elsewhere] = [a, b];
    const large = owner.host.views()[0]?.id as string;
    const metadata = 'x'.repeat(65_000);
    for (let i = 0; i < 400; i++) await owner.rooms.addPeer(large, { metadata });
    let lost = 0;
    const count = (): void => void (lost += 1);
    elsewhere.node.subscribe({ nodedown: count });
    // The test checks the link, so a slow machine gets all the time it needs.
    const timeoutMs = PATIENT_MS;
    let asking = true;
    const shown = portOf(elsewhere)
      .call(owner.name, { type: 'viewRoom', roomId: large, text: true }, { timeoutMs })
      .finally(() => (asking = false));
    let failed = 0;
    while (asking) {
      await portOf(owner)
        .call(elsewhere.name, { type: 'load' }, { timeoutMs })
        .catch(() => (failed += 1));
      await new Promise(setImmediate);
    }
    expect(JSON.stringify(await shown)).toContain(metadata);
    expect(lost).toBe(0);
    expect(failed).toBe(0);
  });

  test('does not consider a member silent while it sends much data over a slow link', async () => {
    for (let i = 0; i < 3; i++) await a.rooms.createRoom({ ...defaultRoomConfig, roomId: `r${i}` });
    const roomId = a.host.views()[0]?.id as string;
    for (let i = 0; i < 40; i++) await a.rooms.addPeer(roomId, { metadata: 'x'.repeat(65_000) });
    // 2.6 MB take longer than a ping may.
    a.wires.bytesPerSecond = 1_500_000;
    const timeoutMs = PATIENT_MS;
    const shown = portOf(b).call(a.name, { type: 'viewRoom', roomId, text: true }, { timeoutMs });
    const asked = b.registry.silentMembers.guard(a.name, () =>
      portOf(b).call(a.name, { type: 'roomRef', roomId }, { timeoutMs }),
    );
    expect(await asked).not.toBeNull();
    expect(JSON.stringify(await shown)).toContain(roomId);
  });

  test('ends no other websocket on another node because of a participant with much metadata', async () => {
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
    const owner = members.find(({ host }) => host.views().length === 1) as Member;
    const elsewhere = members.find((member) => member !== owner) as Member;
    const sockets: TestSocket[] = [];
    const join = async (metadata: string): Promise<(text: string) => void> => {
      const { token } = await owner.rooms.addPeer('hall', {});
      const socket = new TestSocket();
      sockets.push(socket);
      const attached = await elsewhere.rooms.attachPeer(token, socket);
      if (typeof attached === 'string') throw new Error(attached);
      attached.receive(JSON.stringify([{ type: 'join', metadata }]));

      return attached.receive;
    };
    for (let i = 0; i < 150; i++) await join(`${i}`);
    const set = await join('x'.repeat(64_000));
    for (const letter of ['y', 'z']) set(JSON.stringify([{ type: 'setMetadata', metadata: letter.repeat(64_000) }]));
    const updated = ({ sent }: TestSocket): boolean => (sent.at(-1) as { metadata?: string }).metadata?.[0] === 'z';
    const others = sockets.slice(0, -1);
    await until(() => others.every((other) => updated(other) || other.closed !== undefined), PATIENT_MS);
    expect(others.filter(({ closed }) => closed !== undefined).length).toBe(0);
  });

  test('loses only the rooms of a stopped node, and keeps the other nodes running', async () => {
    for (let i = 0; i < 3; i++) await a.rooms.createRoom({ ...defaultRoomConfig, roomId: `r${i}` });
    const gone = b.host.views()[0]?.id as string;
    await b.stop();
    await until(() => a.node.nodes().length === 1 && c.node.nodes().length === 1);
    await expect(a.rooms.getRoom(gone)).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    expect((await a.rooms.listRooms('cluster')).rooms.length).toBe(2);
    expect((await c.rooms.createRoom(defaultRoomConfig)).address).not.toBe('b.example:5002');
  });

  test("refuses a request unknown to the owner of a room with the owner's name and release", async () => {
    const older = { kind: 'room', init: () => null, shapes: ROOM_SHAPES, handlers: {} };
    const behaviour = older as unknown as Behaviour<RoomProtocol, null>;
    const ref = b.system.spawn(behaviour, { name: 'room-of-an-older-release' });
    portOf(b).cast(a.name, { type: 'announce', node: b.name, created: { roomId: 'old', createdAt: 1, ref } });
    await until(() => a.registry.directory.find('old') !== undefined);
    await expect(a.rooms.addPeer('old', {})).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'Room old is on b@127.0.0.1 of release 0.1.0 or earlier, which does not know this request',
    });
  });

  test('does not count tools and foreign nodes as members', async () => {
    const options = { mode: 'name', cookie: 'c', mapper: { port: mapper.port }, log: silentLog } as const;
    const tool = await DistributionNode.start({ ...options, name: 'tool@127.0.0.1', tool: true, listen: false });
    await tool.connect(a.name);
    await until(() => a.node.kindOf('tool@127.0.0.1') !== undefined);
    expect([...portOf(a).members()].toSorted()).toEqual([b.name, c.name]);
    await tool.stop();
  });

  test('has no members before it has started', async () => {
    const system = openActorSystem({ log: silentLog });
    const remote = connectActors(system, { log: silentLog });
    const port = createClusterPort({ system, remote, self: 'x@127.0.0.1' });
    expect(port.members()).toEqual([]);
    port.cast('y@127.0.0.1', { type: 'unclaim', roomId: 'r', claimant: 'c' });
    await expect(port.call('y@127.0.0.1', { type: 'load' }, { timeoutMs: 100 })).rejects.toMatchObject({
      code: 'NO_CONNECTION',
    });
    await system.close();
  });
});
