// LiveKit's RoomService of a node, with LiveKit's own server SDK.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CreateRoomRequest, ParticipantInfo_Kind, Room } from '@livekit/protocol';
import { DataPacket_Kind, RoomServiceClient, type TwirpError } from 'livekit-server-sdk';
import { WebSocket } from 'ws';
import { Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode, type TestNode } from './testing/test-node.js';

let node: TestNode;
let service: RoomServiceClient;
let rooms = 0;
let room = '';
const sockets: WebSocket[] = [];

beforeAll(async () => {
  node = await startTestNode({ JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` });
  service = new RoomServiceClient(node.url, KEY, SECRET);
});
beforeEach(() => void (room = `api-${++rooms}`));
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await node.dispose();
});

async function join(identity: string): Promise<Client> {
  const token = await tokenFor({ sub: identity, video: { room } });
  const url = `${node.url.replace('http', 'ws')}/rtc/v1?access_token=${token}&join_request=${joinRequest()}`;
  const client = new Client(new WebSocket(url));
  sockets.push(client.socket);
  await client.heard('join');

  return client;
}

/** Returns the status, code and text of a refusal. */
const refusal = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'accepted',
    (error: unknown) => {
      const { status, code, message } = error as InstanceType<typeof TwirpError>;
      return `${status} ${code} ${message}`;
    },
  );

function post(
  path: string,
  { token = '', type = 'application/json', body = '{}' as BodyInit } = {},
): Promise<Response> {
  const headers = { 'content-type': type, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) };

  return fetch(`${node.url}/twirp/livekit.${path}`, { method: 'POST', headers, body });
}

describe('rooms', () => {
  test('creates, lists and deletes rooms, which REST shows', async () => {
    const created = await service.createRoom({ name: room, emptyTimeout: 60, maxParticipants: 5, metadata: 'm' });
    expect(created).toMatchObject({ name: room, emptyTimeout: 60, maxParticipants: 5, metadata: 'm' });
    expect(created.sid).toMatch(/^RM_/);
    expect((await node.request('GET', `/room/${room}`)).body.data.config).toMatchObject({
      maxPeers: 5,
      peerlessPurgeTimeout: 60,
      metadata: 'm',
    });
    expect((await service.listRooms([room])).map(({ sid }) => sid)).toEqual([created.sid]);
    await service.deleteRoom(room);
    expect(await service.listRooms([room])).toEqual([]);
  });

  test('returns an existing room unchanged', async () => {
    const first = await service.createRoom({ name: room, metadata: 'first' });
    expect(await service.createRoom({ name: room, metadata: 'second' })).toMatchObject({
      sid: first.sid,
      metadata: 'first',
    });
  });

  test('accepts any room name and maps it to an id that REST accepts', async () => {
    const name = `Grüße ${rooms}`;
    await service.createRoom({ name });
    const [listed] = await service.listRooms([name]);
    expect(listed?.name).toBe(name);
    const { data } = (await node.request('GET', '/room')).body;
    const shown = data.find(({ config }: { config: { name?: string } }) => config.name === name);
    expect(shown.id).toMatch(/^lk--Gr-e-\d+-[a-z2-7]{26}$/);
    await service.deleteRoom(name);
  });

  test('lists rooms created by REST too', async () => {
    await node.createRoom({ roomId: room });
    expect(await service.listRooms([room])).toMatchObject([{ name: room, numParticipants: 0 }]);
  });

  test('tells the participants of a room about new metadata', async () => {
    const ann = await join('ann');
    await service.updateRoomMetadata(room, 'changed');
    expect((await ann.heard('roomUpdate'))?.room).toMatchObject({ name: room, metadata: 'changed' });
  });
});

describe('participants', () => {
  test('lists participants with the others of the room', async () => {
    await join('ann');
    const peer = await node.addPeer(room);
    const listed = await service.listParticipants(room);
    expect(listed).toMatchObject([{ identity: 'ann', kind: ParticipantInfo_Kind.STANDARD }, { identity: peer.id }]);
    expect(await service.getParticipant(room, 'ann')).toMatchObject({ identity: 'ann' });
  });

  test('changes participants, and tells them so', async () => {
    const ann = await join('ann');
    const changed = await service.updateParticipant(room, 'ann', {
      name: 'Ann',
      metadata: 'm',
      attributes: { a: '1' },
      permission: { canPublish: false, canSubscribe: true, canPublishData: true } as never,
    });
    expect(changed).toMatchObject({ name: 'Ann', metadata: 'm', attributes: { a: '1' } });
    await ann.until('update', (update) => update?.participants[0]?.permission?.canPublish === false);
    await ann.until('update', (update) => update?.participants[0]?.name === 'Ann');
  });

  test('removes participants', async () => {
    const ann = await join('ann');
    await service.removeParticipant(room, 'ann');
    await ann.heard('leave');
    expect(await service.listParticipants(room)).toEqual([]);
  });

  test('sends data as a message to participants with the SDK of Jellyfish', async () => {
    await join('ann');
    const { token } = await node.addPeer(room);
    const peer = await node.peerSocket();
    await peer.authenticate(token);
    peer.send({ type: 'connect', data: { metadata: null } });
    await peer.next('connected');
    await service.sendData(room, Buffer.from('{"a":1}'), DataPacket_Kind.RELIABLE, { topic: 'news' });
    const message = await peer.next('custom');
    expect(message.data).toEqual({ type: 'roomMessage', data: { topic: 'news', data: { a: 1 } } });
  });
});

describe('a refusal', () => {
  test.each<[string, () => Promise<unknown>, string]>([
    ['of an absent room', () => service.listParticipants('absent'), '404 not_found requested room does not exist'],
    ['of a room to delete', () => service.deleteRoom('absent'), '404 not_found requested room does not exist'],
    ['without a name', () => service.createRoom({ name: '' }), '400 invalid_argument name cannot be empty'],
    [
      'of a long name',
      () => service.createRoom({ name: 'x'.repeat(257) }),
      '400 invalid_argument the name may have at most 256 bytes',
    ],
    [
      'of an absent person',
      async () => (await service.createRoom({ name: room }), service.getParticipant(room, 'nobody')),
      '404 not_found participant does not exist',
    ],
    [
      'to unmute somebody',
      async () => (await service.createRoom({ name: room }), service.mutePublishedTrack(room, 'ann', 'TR_x', false)),
      '412 failed_precondition remote unmute not enabled',
    ],
    [
      'of another secret',
      () => new RoomServiceClient(node.url, KEY, 'x'.repeat(40)).listRooms(),
      '401 unauthenticated invalid token: the signature does not match',
    ],
  ])('refuses %s with its status, code and text', async (_what, call, expected) => {
    expect(await refusal(call())).toBe(expected);
  });

  test('reveals nothing about this room to a token for another one', async () => {
    await service.createRoom({ name: room });
    const token = await tokenFor({ video: { roomAdmin: true, room: 'another' } });
    const answer = await post('RoomService/ListParticipants', { token, body: JSON.stringify({ room }) });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toEqual({ code: 'unauthenticated', msg: 'permissions denied' });
  });

  test.each([
    ['RoomService/Nothing', 404, 'bad_route'],
    ['NoService/CreateRoom', 404, 'bad_route'],
    ['RoomService/__proto__', 404, 'bad_route'],
    ['Egress/ListEgress', 501, 'unimplemented'],
    ['RoomService/PerformRpc', 501, 'unimplemented'],
  ])('distinguishes the refusal of %s', async (path, status, code) => {
    const token = await tokenFor({ video: { roomAdmin: true, roomList: true, room: 'r' } });
    const answer = await post(path, { token });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(await answer.json()).toMatchObject({ code });
  });

  test('refuses a stranger before the body is read', async () => {
    const answer = await post('RoomService/CreateRoom', { body: 'x'.repeat(1_000_000) });
    expect(answer.status).toBe(401);
  });

  test.each([
    ['that is no JSON', { body: '{' }],
    ['of wrong types', { body: '{"name": 5}' }],
    ['that is no protobuf', { body: 'garbage', type: 'application/protobuf' }],
  ])('does not report a body %s as a fault of the server', async (_what, body) => {
    const token = await tokenFor({ video: { roomCreate: true } });
    expect((await post('RoomService/CreateRoom', { token, ...body })).status).toBe(400);
  });

  test('says so when a body has more than 10 MiB', async () => {
    const token = await tokenFor({ video: { roomCreate: true } });
    const answer = await post('RoomService/CreateRoom', { token, body: 'x'.repeat(10 * 1024 * 1024 + 1) }).catch(
      () => undefined,
    );
    // The client may still be sending when the connection ends.
    expect([429, undefined]).toContain(answer?.status);
  });
});

test('accepts binary messages, as other languages send them', async () => {
  const token = await tokenFor({ video: { roomCreate: true } });
  const body = new CreateRoomRequest({ name: room, metadata: 'binary' }).toBinary();
  const answer = await post('RoomService/CreateRoom', {
    token,
    type: 'application/protobuf',
    body: new Uint8Array(body),
  });
  expect(answer.headers.get('content-type')).toBe('application/protobuf');
  expect(Room.fromBinary(new Uint8Array(await answer.arrayBuffer()))).toMatchObject({ name: room, metadata: 'binary' });
});

test('writes JSON with snake case, default values and numbers of 64 bits as texts', async () => {
  const token = await tokenFor({ video: { roomCreate: true } });
  const answer = await post('RoomService/CreateRoom', {
    token,
    body: JSON.stringify({ name: room, empty_timeout: 7 }),
  });
  const json = (await answer.json()) as Record<string, unknown>;
  expect(json).toMatchObject({ name: room, empty_timeout: 7, num_participants: 0, active_recording: false });
  expect(typeof json['creation_time']).toBe('string');
});
