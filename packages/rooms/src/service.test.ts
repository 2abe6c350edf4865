import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { defaultRoomConfig } from './room-service.js';
import { roomServiceSuite, testNode, TestSocket, type TestNode } from './testing/index.js';
import { issuePeerToken } from './peer/credentials.js';

let node: TestNode;

beforeEach(() => {
  node = testNode();
});
afterEach(() => node.close());

roomServiceSuite('the rooms of a node', () => node.rooms);

const kitchen = { ...defaultRoomConfig, roomId: 'kitchen' };

describe('creating rooms', () => {
  test('generates an id when none is given, and shows it in the config too', async () => {
    const { room, address } = await node.rooms.createRoom({ ...defaultRoomConfig, maxPeers: 3, videoCodec: 'vp8' });

    expect(address).toBe('sfu.example:5002');
    expect(room).toEqual({
      id: 'p1',
      config: { ...defaultRoomConfig, roomId: 'p1', maxPeers: 3, videoCodec: 'vp8' },
      components: [],
      peers: [],
    });
    expect(await node.rooms.getRoom('p1')).toBe(room);
  });

  test('keeps the other rooms running and accepts new ones when a room cannot start', async () => {
    await node.rooms.createRoom({ ...kitchen, roomId: 'attic' });
    const { token } = await node.rooms.addPeer('attic', {});
    const openRoom = node.media.openRoom.bind(node.media);
    node.media.openRoom = async (...given) => {
      const media = await openRoom(...given);
      const fail = (): void => {
        throw new Error('a bug');
      };
      return { ...media, do: fail };
    };
    const broken = node.rooms.createRoom({ ...kitchen, dataEvents: ['chat'] });
    await expect(broken).rejects.toMatchObject({ code: 'ROOM_FAILED' });
    expect(node.media.commands.at(-1)).toBe('kitchen: close');

    await node.connect(token);
    await node.rooms.createRoom(kitchen);
    expect(node.host.views().map(({ id }) => id)).toEqual(['attic', 'kitchen']);
  });

  test('grants an id to only one of many simultaneous creations', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => node.rooms.createRoom(kitchen)));
    const refusedOnes = outcomes.filter((outcome) => outcome.status === 'rejected');

    expect(refusedOnes).toHaveLength(19);
    expect(refusedOnes[0]?.reason).toMatchObject({
      code: 'ROOM_EXISTS',
      message: 'Cannot add room with id "kitchen" - room already exists',
    });
    expect(node.news()).toEqual(['roomCreated']);
  });

  test('does not create a room whose media cannot start, and keeps its id free', async () => {
    node.media.failNextRoom = true;
    await expect(node.rooms.createRoom(kitchen)).rejects.toMatchObject({ code: 'ROOM_FAILED' });
    expect(node.host.load().rooms).toBe(0);
    await node.rooms.createRoom(kitchen);

    expect(node.news()).toEqual(['roomCreated']);
  });

  test('never starts a room that takes too long to start, not even later', async () => {
    const open = node.media.holdRooms();
    const creation = node.rooms.createRoom(kitchen);
    await node.system.idle();
    open();
    for (let i = 0; i < 10; i++) await undefined;
    // The main thread was blocked, so the caller gives up before the room's turn comes.
    node.clock.advance(6_000);
    await expect(creation).rejects.toMatchObject({ code: 'ROOM_FAILED' });
    await node.system.idle();

    expect(node.news()).toEqual([]);
    expect(node.media.commands.at(-1)).toBe('kitchen: close');
  });

  test('does not treat an id as taken because an abandoned creation is still running', async () => {
    const open = node.media.holdRooms();
    let isWanted = true;
    const given = node.host.createRoom(kitchen, undefined, () => isWanted);
    await expect(node.rooms.createRoom(kitchen)).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    isWanted = false;
    await expect(node.rooms.createRoom(kitchen)).rejects.toMatchObject({ code: 'NO_NODE' });
    open();
    await expect(given).rejects.toMatchObject({ code: 'NO_NODE' });
    await node.rooms.createRoom(kitchen);
  });

  test('keeps a drain order given while the node starts', async () => {
    node.host.drain('starting');
    node.host.drainOrder.give('bloomctl', null);
    node.host.undrain('starting');
    await expect(node.rooms.createRoom(defaultRoomConfig)).rejects.toMatchObject({ code: 'DRAINING' });
    node.host.drainOrder.withdraw('bloomctl');
    await node.rooms.createRoom(defaultRoomConfig);
  });

  test('does not end the start when a drain order is withdrawn while the node starts', async () => {
    node.host.drain('starting');
    node.host.drainOrder.give('bloomctl', null);
    node.host.drainOrder.withdraw('bloomctl');
    await expect(node.rooms.createRoom(defaultRoomConfig)).rejects.toMatchObject({ code: 'DRAINING' });
    node.host.undrain('starting');
    await node.rooms.createRoom(defaultRoomConfig);
  });

  test('accepts no new rooms while draining and keeps the old ones until they end', async () => {
    await node.rooms.createRoom(kitchen);
    const ann = await node.join('kitchen');
    node.host.drain('ordered');
    await expect(node.rooms.createRoom(defaultRoomConfig)).rejects.toMatchObject({ code: 'DRAINING' });
    await ann.act({ type: 'setMetadata', metadata: 1 });
    node.host.undrain('ordered');
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
    await node.rooms.deleteRoom('hall');
    node.news();
    // Closing the node overrides the operator.
    node.host.drain('closing');
    node.host.undrain('ordered');
    await expect(node.rooms.createRoom(defaultRoomConfig)).rejects.toMatchObject({ code: 'DRAINING' });
    await node.host.deleteAll();

    expect(node.news()).toEqual(['peerDisconnected p1', 'peerDeleted p1', 'roomDeleted']);
    expect(ann.socket.closed).toBe('1000 Room stopped');
    expect(node.media.commands.at(-1)).toBe('kitchen: close');
  });
});

describe('looking at rooms', () => {
  test('returns the same view object until something changes, and a new one right after a change', async () => {
    await node.rooms.createRoom(kitchen);
    const before = await node.rooms.getRoom('kitchen');
    expect(await node.rooms.getRoom('kitchen')).toBe(before);
    const { peer } = await node.rooms.addPeer('kitchen', {});
    const after = await node.rooms.getRoom('kitchen');

    expect(before.peers).toEqual([]);
    expect(after.peers).toEqual([peer]);
    expect((await node.rooms.listRooms('local')).rooms).toEqual([after]);
  });

  test('reports an unknown room as not found in every call', async () => {
    const { rooms } = node;
    const asked = [
      rooms.getRoom('attic'),
      rooms.deleteRoom('attic'),
      rooms.addPeer('attic', {}),
      rooms.removePeer('attic', 'p'),
      rooms.addComponent('attic', 'hls', {}),
      rooms.removeComponent('attic', 'c'),
      rooms.subscribeComponent('attic', 'c', []),
      rooms.dial('attic', 'c', '1'),
      rooms.hangUp('attic', 'c'),
    ];
    for (const answer of asked) {
      await expect(answer).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND', message: 'Room attic does not exist' });
    }
  });

  test('lets only one of two simultaneous deletions of a room succeed', async () => {
    await node.rooms.createRoom(kitchen);
    const outcomes = await Promise.allSettled([node.rooms.deleteRoom('kitchen'), node.rooms.deleteRoom('kitchen')]);

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(node.news()).toEqual(['roomCreated', 'roomDeleted']);
  });
});

describe('adding peers', () => {
  test('returns a disconnected peer, its token and where to connect', async () => {
    await node.rooms.createRoom(kitchen);
    const { peer, token, websocketUrl } = await node.rooms.addPeer('kitchen', { enableSimulcast: false });

    expect(peer).toEqual({ id: 'p1', type: 'webrtc', status: 'disconnected', tracks: [], metadata: null });
    expect(websocketUrl).toBe('sfu.example:5002/socket/peer/websocket');
    expect(token).toBe(
      issuePeerToken({ roomId: 'kitchen', peerId: 'p1' }, node.clock.wall(), { secretKeyBase: 'a secret for tests' }),
    );
  });

  test('counts connected and disconnected peers towards the limit, and admits no one at 0', async () => {
    await node.rooms.createRoom({ ...kitchen, maxPeers: 2 });
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'safe', maxPeers: 0 });
    await node.rooms.addPeer('kitchen', {});
    await node.join('kitchen');

    await expect(node.rooms.addPeer('kitchen', { enableSimulcast: 'garbage' })).rejects.toMatchObject({
      code: 'PEER_LIMIT',
      message: 'Reached peer limit in room kitchen',
    });
    await expect(node.rooms.addPeer('safe', {})).rejects.toMatchObject({ code: 'PEER_LIMIT' });
    await node.rooms.removePeer('kitchen', 'p1');
    await node.rooms.addPeer('kitchen', {});
  });

  test.each([[[]], ['text'], [7], [{ enableSimulcast: 1 }], [{ enableSimulcast: 'true' }]])(
    'refuses the options %j',
    async (options) => {
      await node.rooms.createRoom(kitchen);
      await expect(node.rooms.addPeer('kitchen', options)).rejects.toMatchObject({
        code: 'INVALID_OPTIONS',
        message: 'Invalid request body structure',
      });
      expect(node.news()).toEqual(['roomCreated']);
    },
  );

  test.each([
    [undefined, true],
    [null, true],
    [{}, true],
    [{ enableSimulcast: null }, true],
    [{ enableSimulcast: false }, false],
  ])('accepts the options %j', async (options, simulcast) => {
    await node.rooms.createRoom(kitchen);
    const { token } = await node.rooms.addPeer('kitchen', options);
    await node.connect(token);

    const [report] = await node.host.reports();
    expect(report?.peers[0]?.descriptions.answer).toBe(`simulcast ${simulcast}`);
  });

  test('refuses peers without WebRTC before it checks the options', async () => {
    const off = testNode({ webrtcEnabled: false });
    await off.rooms.createRoom(kitchen);

    await expect(off.rooms.addPeer('kitchen', 'garbage')).rejects.toMatchObject({ code: 'PEER_TYPE_DISABLED' });
    await expect(off.rooms.addPeer('attic', {})).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    await off.close();
  });

  test('refuses to remove unknown peers', async () => {
    await node.rooms.createRoom(kitchen);

    await expect(node.rooms.removePeer('kitchen', 'p7')).rejects.toMatchObject({
      code: 'PEER_NOT_FOUND',
      message: 'Peer p7 does not exist',
    });
  });
});

describe('attaching sockets', () => {
  test('distinguishes each refusal', async () => {
    await node.rooms.createRoom(kitchen);
    const { token } = await node.rooms.addPeer('kitchen', {});
    const attach = (text: string): Promise<unknown> => node.rooms.attachPeer(text, new TestSocket());
    const issue = (roomId: string, peerId: string): string =>
      issuePeerToken({ roomId, peerId }, node.clock.wall(), { secretKeyBase: 'a secret for tests' });

    expect(await attach('')).toBe('invalid token');
    expect(await attach(`${token}x`)).toBe('invalid token');
    expect(await attach(issue('attic', 'p1'))).toBe('room not found');
    expect(await attach(issue('kitchen', 'p9'))).toBe('peer not found');
    await node.advance(24 * 60 * 60);
    expect(await attach(token)).toBe('expired token');
    expect(node.news()).toEqual(['roomCreated', 'peerAdded p1']);
  });

  test('logs each refusal of a peer, and those of strangers once a minute', async () => {
    const log = createLogger({ sink: () => undefined });
    const logged = testNode({ log });
    await logged.rooms.createRoom(kitchen);
    const issue = (roomId: string): string =>
      issuePeerToken({ roomId, peerId: 'p9' }, logged.clock.wall(), { secretKeyBase: 'a secret for tests' });
    const attack = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        for (const token of [`${i}`, issue('attic'), issue('kitchen')]) {
          await logged.rooms.attachPeer(token, new TestSocket());
        }
      }
    };
    await attack();
    await logged.advance(60);
    await attack();

    const refused = log.recent.last().filter(({ event }) => event === 'peer.refused');
    const once = ['invalid token', 'room not found', 'peer not found'];
    expect(refused.map(({ fields }) => fields['reason'])).toEqual([...once, ...once]);
    await logged.close();
  });

  test("disconnects a client that overflows its peer's mailbox, and keeps the peer", async () => {
    await node.rooms.createRoom(kitchen);
    const { token } = await node.rooms.addPeer('kitchen', {});
    const socket = new TestSocket();
    const attached = await node.rooms.attachPeer(token, socket);
    if (typeof attached === 'string') throw new Error(attached);
    for (let i = 0; i < 10_001; i++) attached.receive('[]');
    attached.detach('closed_by_client');
    await node.system.idle();

    expect(socket.closed).toBe('1011 Internal server error');
    expect((await node.rooms.getRoom('kitchen')).peers[0]?.status).toBe('disconnected');
    await node.connect(token);
  });
});

describe('reports', () => {
  test('lists the rooms with connected peers, with or without media', async () => {
    await node.rooms.createRoom(kitchen);
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'empty' });
    await node.rooms.addPeer('kitchen', {});
    expect(await node.host.reports()).toEqual([]);
    await node.join('kitchen', { name: 'Bob' });

    expect(await node.host.reports()).toEqual([
      {
        roomId: 'kitchen',
        peers: [
          {
            peerId: 'p2',
            metadata: { name: 'Bob' },
            tracks: [],
            descriptions: { offer: 'offer of p2', answer: 'simulcast true' },
          },
        ],
        media: { roomId: 'kitchen', transports: [expect.objectContaining({ peerId: 'p2' })] },
      },
    ]);
  });
});
