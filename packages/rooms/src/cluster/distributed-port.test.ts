import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  connectActors,
  createActorSystem,
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
import { LocalRooms } from '../local-rooms.js';
import { defaultRoomConfig } from '../room-service.js';
import { ROOM_SHAPES, type RoomProtocol } from '../room/room-messages.js';
import { Rooms } from '../rooms.js';
import { scriptedSession, TestMedia, TestSocket } from '../testing/index.js';
import { homesOf } from './claims.js';
import type { ClusterPort } from './cluster-port.js';
import { ClusterRooms } from './cluster-rooms.js';
import { createClusterPort, followMembers } from './distributed-port.js';
import { NODE_ACTOR, NODE_SHAPES, type NodeProtocol } from './node-messages.js';

interface Member {
  name: string;
  system: ActorSystem;
  remote: RemoteActors;
  node: DistributionNode;
  local: LocalRooms;
  cluster: ClusterRooms;
  rooms: Rooms;
  wires: TestWires;
  stop: () => Promise<void>;
}

const secretKeyBase = 'a secret for tests';

async function startMember(alive: string, mapperPort: number, seeds: readonly string[]): Promise<Member> {
  const name = `${alive}@127.0.0.1`;
  const system = createActorSystem({ log: silentLog });
  const remote = connectActors(system, { log: silentLog });
  const local = new LocalRooms({
    system,
    engine: new TestMedia(),
    createSession: scriptedSession,
    events: (notification) => cluster.observe(notification),
    log: silentLog,
    address: `${alive}.example:5002`,
    secretKeyBase,
    webrtcEnabled: true,
  });
  const cluster = new ClusterRooms({
    system,
    port: createClusterPort({ system, remote, self: name }),
    local,
    log: silentLog,
  });
  const rooms = new Rooms({ system, local, cluster, log: silentLog, secretKeyBase });
  const wires = new TestWires();
  const node = await remote.start({
    name,
    mode: 'name',
    cookie: 'c',
    mapper: { port: mapperPort },
    wire: wires.wire,
    log: silentLog,
  });
  followMembers(node, cluster);
  node.seed(seeds);
  const stop = async (): Promise<void> => {
    await remote.close();
    await system.close();
  };

  return { name, system, remote, node, local, cluster, rooms, wires, stop };
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
    mapper = await PortMapperServer.start({ port: 0, log: silentLog });
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
    for (const { local } of members) expect(local.views().length).toBe(2);
    expect(new Set(addresses)).toEqual(new Set(['a.example:5002', 'b.example:5002', 'c.example:5002']));
    const { rooms, unreachable } = await b.rooms.listRooms('cluster');
    expect(rooms).toHaveLength(6);
    expect(unreachable).toEqual([]);
  });

  test('any node answers for any room', async () => {
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

  test('a malformed message from a member ends neither the rooms of a node nor its services', async () => {
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    const owner = members.find(({ local }) => local.roomRef('kitchen') !== undefined) ?? a;
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

  test('a request id is logged on every node that works on the request', async () => {
    for (let i = 0; i < 3; i++) {
      await a.rooms.createRoom({ ...defaultRoomConfig, roomId: `room-${i}` }, `create-${i}`);
    }
    const at = [0, 1, 2].find((i) => b.local.roomRef(`room-${i}`) !== undefined);
    const roomId = `room-${at}`;
    expect(a.cluster.decisions.find((decision) => decision.roomId === roomId)?.requestId).toBe(`create-${at}`);
    const where = ({ system }: Member, id: string): string[] =>
      system.hops(id).map((hop) => `${hop.from} -> ${hop.where} ${hop.what}`);
    expect(where(b, `create-${at}`)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^a@127.0.0.1 -> .* create$/), 'rooms -> /rooms create']),
    );

    await a.rooms.addPeer(roomId, {}, 'add');
    expect(where(a, 'add')).toEqual([`null -> directory owner of ${roomId} is b@127.0.0.1`]);
    expect(where(b, 'add')).toEqual([`a@127.0.0.1 -> /rooms/${roomId} addPeer`]);
    expect(where(c, 'add')).toEqual([]);
  });

  test('announcements that a full link rejected are resent once it accepts messages again', async () => {
    const roomId = Array.from({ length: 99 }, (_, i) => `room-${i}`).find(
      (id) => homesOf(id, [a.name, b.name, c.name])[0] === b.name,
    ) as string;
    const whileFull = async (act: () => Promise<unknown>): Promise<void> => {
      a.wires.pendingBytes = 9 * 1024 * 1024;
      await act();
      a.wires.pendingBytes = undefined;
    };
    await whileFull(() => a.local.createRoom({ ...defaultRoomConfig, roomId }));
    await until(() => [b, c].every(({ cluster }) => cluster.directory.find(roomId)?.node === a.name), 3_000);
    await expect(b.rooms.createRoom({ ...defaultRoomConfig, roomId })).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    await whileFull(() => a.local.deleteRoom(roomId));
    await until(() => [b, c].every(({ cluster }) => cluster.directory.find(roomId) === undefined), 3_000);
  });

  test('only one of two simultaneous creations of the same id on two nodes succeeds', async () => {
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
      owner = members.find(({ local }) => local.views().length === 1) as Member;
      elsewhere = members.find((member) => member !== owner) as Member;
      ({ token } = await a.rooms.addPeer('hall', {}));
      socket = new TestSocket();
      const answer = await elsewhere.rooms.attachPeer(token, socket);
      if (typeof answer === 'string') throw new Error(answer);
      attached = answer;
      attached.receive(JSON.stringify([{ type: 'join', metadata: { name: 'ann', '\ud800': 1 } }]));
    });

    const status = () => owner.local.views()[0]?.peers[0]?.status;

    test('a websocket on another node talks with its peer in both directions', async () => {
      await until(() => socket.sent.length > 0);
      expect(status()).toBe('connected');
      attached.receive(JSON.stringify([{ type: 'send', text: JSON.stringify({ back: 'ä' }) }]));
      await until(() => socket.sent.some((text) => JSON.stringify(text) === '{"back":"ä"}'));
    });

    test('a live websocket on another node keeps a second one from attaching to its peer', async () => {
      const third = members.find((member) => member !== owner && member !== elsewhere) as Member;
      expect(await third.rooms.attachPeer(token, new TestSocket())).toBe('peer already connected');
      expect(socket.pings).toBe(1);
      socket.alive = false;
      expect(typeof (await third.rooms.attachPeer(token, new TestSocket()))).toBe('object');
      await until(() => socket.closed !== undefined);
    });

    test('a websocket receives everything that its node could not accept for a moment', async () => {
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

    test('a websocket is closed when its node stops accepting messages, and its client may come back', async () => {
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

    test('a websocket that overflows the mailbox of its peer is closed, and its client may come back', async () => {
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

    test('a websocket on another node ends with its peer', async () => {
      await until(() => status() === 'connected');
      await a.rooms.deleteRoom('hall');
      await until(() => socket.closed !== undefined);
      expect(socket.closed).toBe('1000 Room stopped');
    });

    test('the room notices when a websocket on another node closes', async () => {
      await until(() => status() === 'connected');
      attached.detach('closed_by_client');
      await until(() => status() === 'disconnected');
    });

    test('a websocket is closed when the node of the room is lost', async () => {
      await until(() => status() === 'connected');
      await owner.stop();
      await until(() => socket.closed !== undefined);
      expect(socket.closed).toBe('1011 Internal server error');
    });

    test('a websocket does not keep its node from ending the rooms there', async () => {
      await until(() => status() === 'connected');
      await elsewhere.local.createRoom({ ...defaultRoomConfig, roomId: 'cellar' });
      let ended = false;
      void elsewhere.local.deleteAll().then(() => {
        ended = true;
      });
      await until(() => ended, 2_000);
      expect(elsewhere.local.views()).toEqual([]);
      expect(socket.closed).toBeUndefined();
      expect(status()).toBe('connected');
    });

    test("the room treats the loss of a websocket's node as the loss of the websocket", async () => {
      await until(() => status() === 'connected');
      await elsewhere.stop();
      await until(() => status() === 'disconnected');
    });
  });

  test('shows a room on a node of the previous release', async () => {
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'old' });
    const owner = members.find(({ local }) => local.views().length === 1) as Member;
    const elsewhere = members.find((member) => member !== owner) as Member;
    const { load, roomRef } = NODE_SHAPES;
    const before: Behaviour<Pick<NodeProtocol, 'load' | 'roomRef'>, null> = {
      kind: 'rooms-node',
      shapes: { load, roomRef },
      init: () => null,
      handlers: {
        load: () => ({ forwardedTracks: 0, rooms: 1, draining: true }),
        roomRef: (_state, { roomId }) => owner.local.roomRef(roomId) ?? null,
      },
    };
    owner.system.unregister(NODE_ACTOR);
    owner.system.register(NODE_ACTOR, owner.system.spawn(before));
    expect(await elsewhere.rooms.getRoom('old')).toMatchObject({ id: 'old' });
  });

  test('shows metadata with more terms than a message may hold, and such a message ends no connection', async () => {
    const { room } = await a.rooms.createRoom(defaultRoomConfig);
    const owner = members.find(({ local }) => local.views().length === 1) as Member;
    const elsewhere = members.find((member) => member !== owner) as Member;
    const metadata = Array.from({ length: 32_000 }, () => 0);
    for (let i = 0; i < 130; i++) await owner.rooms.addPeer(room.id, { metadata });
    let lost = 0;
    const count = (): void => void (lost += 1);
    elsewhere.node.subscribe({ nodedown: count });
    expect((await elsewhere.rooms.getRoom(room.id)).peers.length).toBe(130);
    const { rooms, unreachable } = await elsewhere.rooms.listRooms('cluster');
    expect(rooms.map(({ peers }) => peers.length)).toEqual([130]);
    expect(unreachable).toEqual([]);
    const ref = owner.remote.remote(elsewhere.name, NODE_ACTOR, NODE_SHAPES);
    const many = Array.from({ length: 4_000_000 }, () => 0) as unknown as string;
    expect(owner.system.cast<NodeProtocol>(ref, { type: 'withdraw', creation: many })).toBe(false);
    expect(lost).toBe(0);
  });

  test('the link stays usable for other calls while it carries a room with much metadata', async () => {
    for (let i = 0; i < 3; i++) await a.rooms.createRoom({ ...defaultRoomConfig, roomId: `r${i}` });
    const [owner, elsewhere] = [a, b];
    const large = owner.local.views()[0]?.id as string;
    const metadata = 'x'.repeat(65_000);
    for (let i = 0; i < 400; i++) await owner.rooms.addPeer(large, { metadata });
    let lost = 0;
    const count = (): void => void (lost += 1);
    elsewhere.node.subscribe({ nodedown: count });
    // The test checks the link, so a slow machine gets all the time it needs.
    const timeoutMs = 25_000;
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
    const roomId = a.local.views()[0]?.id as string;
    for (let i = 0; i < 40; i++) await a.rooms.addPeer(roomId, { metadata: 'x'.repeat(65_000) });
    // 2.6 MB take longer than a ping may.
    a.wires.bytesPerSecond = 1_500_000;
    const timeoutMs = 25_000;
    const shown = portOf(b).call(a.name, { type: 'viewRoom', roomId, text: true }, { timeoutMs });
    const asked = b.cluster.silentMembers.guard(a.name, () =>
      portOf(b).call(a.name, { type: 'roomRef', roomId }, { timeoutMs }),
    );
    expect(await asked).not.toBeNull();
    expect(JSON.stringify(await shown)).toContain(roomId);
  });

  test('a participant with much metadata ends no other websocket on another node', async () => {
    await a.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
    const owner = members.find(({ local }) => local.views().length === 1) as Member;
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
    await until(() => others.every((other) => updated(other) || other.closed !== undefined), 20_000);
    expect(others.filter(({ closed }) => closed !== undefined).length).toBe(0);
  });

  test('a stopped node takes its rooms with it, and the other nodes keep running', async () => {
    for (let i = 0; i < 3; i++) await a.rooms.createRoom({ ...defaultRoomConfig, roomId: `r${i}` });
    const gone = b.local.views()[0]?.id as string;
    await b.stop();
    await until(() => a.node.nodes().length === 1 && c.node.nodes().length === 1);
    await expect(a.rooms.getRoom(gone)).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    expect((await a.rooms.listRooms('cluster')).rooms.length).toBe(2);
    expect((await c.rooms.createRoom(defaultRoomConfig)).address).not.toBe('b.example:5002');
  });

  test("a request unknown to the owner of a room is refused with the owner's name and release", async () => {
    const older = { kind: 'room', init: () => null, shapes: ROOM_SHAPES, handlers: {} };
    const behaviour = older as unknown as Behaviour<RoomProtocol, null>;
    const ref = b.system.spawn(behaviour, { name: 'room-of-an-older-release' });
    portOf(b).cast(a.name, { type: 'announce', node: b.name, created: { roomId: 'old', createdAt: 1, ref } });
    await until(() => a.cluster.directory.find('old') !== undefined);
    await expect(a.rooms.addPeer('old', {})).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'Room old lives on b@127.0.0.1 of release 0.1.0 or earlier, which does not know this request',
    });
  });

  test('tools and foreign nodes are not members', async () => {
    const options = { mode: 'name', cookie: 'c', mapper: { port: mapper.port }, log: silentLog } as const;
    const tool = await DistributionNode.start({ ...options, name: 'tool@127.0.0.1', tool: true, listen: false });
    await tool.connect(a.name);
    await until(() => a.node.kindOf('tool@127.0.0.1') !== undefined);
    expect([...portOf(a).members()].toSorted()).toEqual([b.name, c.name]);
    await tool.stop();
  });

  test('a node has no members before it has started', async () => {
    const system = createActorSystem({ log: silentLog });
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
