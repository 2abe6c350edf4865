// LiveKit's signalling on a node: who is admitted, who is refused and how, and what attackers achieve.
import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { until } from '@bloom/time/testing';
import { DisconnectReason, SignalRequest } from '@livekit/protocol';
import { WebSocket } from 'ws';
import { type Claims, Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode, type TestNode } from './testing/test-node.js';

const OTHER_KEY = 'APItwo';

let node: TestNode;
const lines: string[] = [];
const clients: WebSocket[] = [];

beforeAll(async () => {
  const log = createLogger({ level: 'debug', structured: true, sink: (line: string) => void lines.push(line) });
  node = await startTestNode(
    { JF_LIVEKIT_KEYS: `\n${KEY}: ${SECRET}\n${OTHER_KEY}: ${SECRET}\n`, JF_CHECK_ORIGIN: 'true' },
    { log },
  );
});
afterAll(async () => {
  for (const client of clients) client.terminate();
  await node.dispose();
});

let rooms = 0;
const newRoom = (): string => `lk-room-${++rooms}`;

const query = (token: string, join = joinRequest()): string => `access_token=${token}&join_request=${join}`;

async function validate(token: string, join?: string): Promise<string> {
  const answer = await fetch(`${node.url}/rtc/v1/validate?${query(token, join)}`);

  return `${answer.status} ${await answer.text()}`;
}

function client(url: string, headers: Record<string, string> = {}): Client {
  const opened = new Client(new WebSocket(url, { headers }));
  clients.push(opened.socket);

  return opened;
}

function open(token: string, join?: string, headers: Record<string, string> = {}): Client {
  return client(`${node.url.replace('http', 'ws')}/rtc/v1?${query(token, join)}`, headers);
}

const peersOf = async (room: string) => (await node.request('GET', `/room/${room}`)).body.data?.peers ?? [];

describe('a join', () => {
  test('creates the room and a peer that REST shows with its name and permissions', async () => {
    const room = newRoom();
    const client = open(
      await tokenFor({ name: 'Ann', attributes: { a: '1' }, video: { room, canPublishData: false } }),
    );
    const join = await client.heard('join');
    expect(join?.room).toMatchObject({ name: room, departureTimeout: 20 });
    const [peer] = await peersOf(room);
    expect(peer).toMatchObject({
      status: 'connected',
      metadata: { peer: null, server: { identity: 'ann', name: 'Ann', kind: 'standard', attributes: { a: '1' } } },
      permissions: { publish: ['audio', 'video'], subscribe: true, metadata: false },
    });
  });

  test('admits a join to a room whose limits are above what LiveKit can show', async () => {
    const room = await node.createRoom({ roomId: newRoom(), maxPeers: 5_000_000_000 });
    const client = open(await tokenFor({ video: { room } }));
    expect((await client.heard('join'))?.room?.maxParticipants).toBe(0xffffffff);
  });

  test('admits a join from a page of any origin, since its token is the proof', async () => {
    const client = open(await tokenFor({ video: { room: newRoom() } }), undefined, { origin: 'https://example.com' });
    expect((await client.heard('join'))?.participant?.identity).toBe('ann');
  });

  test('admits a join by a header instead of a parameter', async () => {
    const token = await tokenFor({ video: { room: newRoom() } });
    const url = `${node.url.replace('http', 'ws')}/rtc/v1?join_request=${joinRequest()}`;
    const opened = client(url, { authorization: `Bearer ${token}` });
    expect((await opened.heard('join'))?.participant?.identity).toBe('ann');
  });

  test('admits a join with a request of 20 KiB in its address', async () => {
    const cids = Array.from({ length: 20 }, () => randomBytes(750).toString('latin1'));
    const join = joinRequest({ addTrackRequests: cids.map((cid) => ({ cid, name: cid })) });
    expect(join.length).toBeGreaterThan(20 * 1024);
    const client = open(await tokenFor({ video: { room: newRoom() } }), join);
    expect((await client.heard('join'))?.participant?.identity).toBe('ann');
  });

  test('sends a token after a join with which the client can come back', async () => {
    const room = newRoom();
    const client = open(await tokenFor({ name: 'Ann', video: { room } }));
    expect(await validate((await client.heard('refreshToken')) ?? '')).toBe('200 success');
  });

  test('removes the peer when its join ends, and the room when its time is over', async () => {
    const room = newRoom();
    const token = await tokenFor({ roomConfig: { departure_timeout: 1 }, video: { room } });
    const events = await node.serverSocket();
    const client = open(token);
    await client.heard('join');
    client.send({ case: 'leave', value: { reason: DisconnectReason.CLIENT_INITIATED } as never });
    expect(await client.ended).toBe('1000');
    const types = ['peerDisconnected', 'peerDeleted', 'roomDeleted'];
    for (const type of types) {
      await events.until((message) => 'roomId' in message && message.roomId === room && message.type === type);
    }
  });

  test('replaces a participant when its identity joins again', async () => {
    const room = newRoom();
    const token = await tokenFor({ video: { room } });
    const first = open(token);
    await first.heard('join');
    const second = open(token);
    expect((await second.heard('join'))?.otherParticipants).toEqual([]);
    expect(await first.heard('leave')).toMatchObject({ reason: DisconnectReason.DUPLICATE_IDENTITY });
    expect(await first.ended).toBe('1000');
  });

  test('answers text frames in text', async () => {
    const client = open(await tokenFor({ video: { room: newRoom() } }));
    // The last frame that nobody has asked for.
    await client.heard('refreshToken');
    client.socket.send(JSON.stringify({ pingReq: { timestamp: '5' } }));
    expect(await client.heard('pongResp')).toMatchObject({ lastPingTimestamp: 5n });
    expect(client.texts).toHaveLength(1);
  });

  test('resumes the same participant on another websocket', async () => {
    const token = await tokenFor({ video: { room: newRoom() } });
    const first = open(token);
    const participantSid = (await first.heard('join'))?.participant?.sid ?? '';
    const second = open(token, joinRequest({ reconnect: true, participantSid }));
    await second.heard('reconnect');
    expect((await second.heard('update'))?.participants).toMatchObject([{ sid: participantSid }]);
    expect(await first.ended).toBe('1000');
  });
});

describe('a change by the backend', () => {
  test('tells the participant of new metadata, which its next token contains', async () => {
    const room = newRoom();
    const client = open(await tokenFor({ video: { room } }));
    await client.heard('join');
    const [peer] = await peersOf(room);
    await node.request('PATCH', `/room/${room}/peer/${peer.id}`, {
      metadata: { ...peer.metadata.server, name: 'Anna' },
    });
    expect((await client.heard('update'))?.participants).toMatchObject([{ identity: 'ann', name: 'Anna' }]);
  });

  test('says so when the backend removes the peer', async () => {
    const room = newRoom();
    const client = open(await tokenFor({ video: { room } }));
    await client.heard('join');
    const [peer] = await peersOf(room);
    await node.request('DELETE', `/room/${room}/peer/${peer.id}`);
    expect(await client.heard('leave')).toMatchObject({ reason: DisconnectReason.PARTICIPANT_REMOVED });
  });

  test('says so when the backend deletes the room', async () => {
    const room = newRoom();
    const client = open(await tokenFor({ video: { room } }));
    await client.heard('join');
    await node.request('DELETE', `/room/${room}`);
    expect(await client.heard('leave')).toMatchObject({ reason: DisconnectReason.ROOM_DELETED });
  });
});

describe('a refusal', () => {
  test.each<[string, Claims, string]>([
    ['without the grant to join', { video: { room: 'r', roomJoin: false } }, '401 permissions denied'],
    ['without an identity', { sub: '', video: { room: 'r' } }, '400 identity cannot be empty'],
    ['without a room', {}, '400 no room name'],
    [
      'with a long identity',
      { sub: 'x'.repeat(257), video: { room: 'r' } },
      '400 the identity may have at most 256 bytes',
    ],
    [
      'with long metadata',
      { metadata: 'x'.repeat(9_000), attributes: { a: 'x'.repeat(60_000) }, video: { room: 'r' } },
      '',
    ],
    [
      'with an unreadable room configuration',
      { roomConfig: { empty_timeout: 'x' }, video: { room: 'r' } },
      '401 invalid token: the claim roomConfig cannot be read',
    ],
  ])('gives the reason for refusing a token %s', async (_what, claims, reason) => {
    const token = await tokenFor(claims);
    if (reason === '') return expect(await validate(token)).toMatch(/^(400|431)/);
    if (claims['roomConfig'] !== undefined) return expect(await open(token).ended).toBe(reason);
    expect(await validate(token)).toBe(reason);
    return expect(await open(token).ended).toBe(reason);
  });

  test('gives the reason for refusing a request without a token', async () => {
    const answer = await fetch(`${node.url}/rtc/v1/validate`);
    expect(answer.status).toBe(401);
    expect(await answer.text()).toBe('permissions denied');
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  });

  test("evicts nobody when the identity of another face's peer is used", async () => {
    const room = newRoom();
    const roomId = await node.createRoom({ roomId: room });
    const { id } = await node.addPeer(roomId);
    const token = await tokenFor({ sub: id, video: { room } });
    expect(await validate(token)).toBe('403 identity is used by another peer');
    expect(await open(token).ended).toBe('403 identity is used by another peer');
    expect(await peersOf(room)).toHaveLength(1);
  });

  test('gives the reason for refusing a full room, and lets somebody who is in it come back', async () => {
    const room = newRoom();
    const roomConfig = { maxParticipants: 1 };
    const ann = await tokenFor({ roomConfig, video: { room } });
    await open(ann).heard('join');
    expect(await open(await tokenFor({ sub: 'bob', roomConfig, video: { room } })).ended).toBe('403 room is full');
    expect((await open(ann).heard('join'))?.participant?.identity).toBe('ann');
  });

  test.each(['agent', 'egress'])(
    'lets a participant of the kind %s into a full room, where it takes no place',
    async (kind) => {
      const room = newRoom();
      const roomConfig = { maxParticipants: 1 };
      const helper = await tokenFor({ sub: 'helper', kind, roomConfig, video: { room } });
      await open(helper).heard('join');
      await open(await tokenFor({ sub: 'ann', video: { room } })).heard('join');
      const another = await tokenFor({ sub: 'another', kind, video: { room } });
      expect(await validate(another)).toBe('200 success');
      expect((await open(another).heard('join'))?.participant?.identity).toBe('another');
      expect(await validate(await tokenFor({ sub: 'bob', video: { room } }))).toBe('403 room is full');
    },
  );

  test('gives the reason for refusing a sixth join of one identity within a second', async () => {
    const token = await tokenFor({ video: { room: newRoom() } });
    const ends = Array.from({ length: 12 }, () => open(token).ended);
    expect(await Promise.race(ends.slice(5))).toBe('429 too many joins of this identity');
  });

  test('gives the same reasons to clients that speak version 0 of the signalling', async () => {
    const ask = async (path: string): Promise<string> => {
      const answer = await fetch(`${node.url}${path}`);
      return `${answer.status} ${await answer.text()}`;
    };
    expect(await ask('/rtc/validate')).toBe('401 permissions denied');
    const token = await tokenFor({ video: { room: newRoom() } });
    expect(await ask(`/rtc/validate?access_token=${token}`)).toBe('200 success');
    expect(await ask(`/rtc/validate?access_token=${token}&publish=x`)).toBe(
      '400 the parameter publish is not supported',
    );
    const attributes = Buffer.from('{"a":1}').toString('base64');
    const refused = await ask(`/rtc/validate?access_token=${token}&attributes=${attributes}`);
    expect(refused).toBe('400 the parameter attributes cannot be read');
  });

  test('sends the client back to the start for a session that this node does not have', async () => {
    const token = await tokenFor({ video: { room: newRoom() } });
    const client = open(token, joinRequest({ reconnect: true, participantSid: 'PA_unknown' }));
    expect(await client.heard('leave')).toMatchObject({ reason: DisconnectReason.STATE_MISMATCH });
  });

  test("leaves a session alone that somebody else's identity tries to resume", async () => {
    const room = newRoom();
    const client = open(await tokenFor({ video: { room } }));
    const participantSid = (await client.heard('join'))?.participant?.sid ?? '';
    const thief = open(
      await tokenFor({ sub: 'eve', video: { room } }),
      joinRequest({ reconnect: true, participantSid }),
    );
    expect(await thief.heard('leave')).toMatchObject({ reason: DisconnectReason.STATE_MISMATCH });
    client.send({ case: 'ping', value: 1n });
    expect(await client.heard('pong')).toBeGreaterThan(0n);
  });
});

test.each<[string, Claims]>([
  ['for another room', { video: { room: 'another' } }],
  ['signed with another key', { iss: OTHER_KEY }],
  ['that grants less', { video: { canPublish: false } }],
  ['that names fewer sources', { video: { canPublishSources: ['camera'] } }],
  ['of another kind', { kind: 'agent' }],
])('starts over a client that comes back with a token %s', async (_what, claims) => {
  const room = newRoom();
  const client = open(await tokenFor({ video: { room } }));
  const participantSid = (await client.heard('join'))?.participant?.sid ?? '';
  const token = await tokenFor({ ...claims, video: { room, ...claims.video } });
  const back = open(token, joinRequest({ reconnect: true, participantSid }));
  expect(await back.heard('leave')).toMatchObject({ reason: DisconnectReason.STATE_MISMATCH });
  client.send({ case: 'ping', value: 1n });
  expect(await client.heard('pong')).toBeGreaterThan(0n);
});

describe('attackers', () => {
  test.each<[string, (token: string) => Promise<string>]>([
    ['resume', (token) => open(token, joinRequest({ reconnect: true, participantSid: 'PA_unknown' })).ended],
    ['ask whether they may join', (token) => validate(token)],
    ['send unreadable joins', (token) => validate(token, 'AAAA')],
  ])('refuses attackers who %s too often', async (_what, attempt) => {
    const token = await tokenFor({ video: { room: newRoom() } });
    const ends = await Promise.all(Array.from({ length: 30 }, () => attempt(token)));
    expect(ends).toContain('429 too many joins of this identity');
  });

  test('keeps no peer of an upgrade that cannot become a websocket', async () => {
    const room = newRoom();
    const token = await tokenFor({ video: { room } });
    const headers = { connection: 'upgrade', upgrade: 'websocket' };
    const status = await new Promise((resolve, reject) => {
      const answered = get(`${node.url}/rtc/v1?${query(token)}`, { headers }, (response) => {
        resolve(response.resume().statusCode);
      });
      answered.on('error', reject);
    });
    expect(status).toBe(400);
    await until(async () => (await peersOf(room)).length === 0);
  });

  test('counts a large frame as several', async () => {
    const before = lines.length;
    const client = open(await tokenFor({ video: { room: newRoom() } }));
    await client.heard('join');
    const sid = 'x'.repeat(256 * 1024);
    for (let i = 0; i < 60; i++) client.send({ case: 'mute', value: { sid, muted: true } as never });
    await until(() => lines.slice(before).some((line) => line.includes('livekit.frames_dropped')));
  });

  test('counts a frame of many fields as several, in both forms', async () => {
    const empty = Array.from({ length: 9_000 }, () => ({}));
    const request = new SignalRequest({
      message: { case: 'subscription', value: { participantTracks: empty } as never },
    });
    for (const frame of [request.toBinary(), JSON.stringify({ subscription: { participantTracks: empty } })]) {
      const before = lines.length;
      const client = open(await tokenFor({ video: { room: newRoom() } }));
      await client.heard('join');
      for (let i = 0; i < 20; i++) client.socket.send(frame);
      await until(() => lines.slice(before).some((line) => line.includes('livekit.frames_dropped')));
    }
  });

  test.each([
    ['garbage', Buffer.from('garbage that is no protobuf')],
    ['nothing', Buffer.alloc(0)],
    [
      'half of a message',
      Buffer.from(
        new SignalRequest({ message: { case: 'offer', value: { sdp: 'x'.repeat(99) } as never } })
          .toBinary()
          .subarray(0, 50),
      ),
    ],
  ])('neither answers nor disconnects attackers who send %s', async (_what, bytes) => {
    const client = open(await tokenFor({ video: { room: newRoom() } }));
    await client.heard('join');
    for (let i = 0; i < 50; i++) client.socket.send(bytes);
    client.send({ case: 'ping', value: 1n });
    expect(await client.heard('pong')).toBeGreaterThan(0n);
  });

  test.each(['{"addTrack":{"type":9007199254740991}}', '{"trackSetting":{"quality":4294967296}}', '{', '[]', '5'])(
    'ignores the text %s, which no binary message can carry',
    async (text) => {
      const client = open(await tokenFor({ video: { room: newRoom() } }));
      await client.heard('join');
      client.socket.send(text);
      client.send({ case: 'ping', value: 1n });
      expect(await client.heard('pong')).toBeGreaterThan(0n);
    },
  );

  test('disconnects attackers who send a frame of more than 2 MiB', async () => {
    const client = open(await tokenFor({ video: { room: newRoom() } }));
    await client.heard('join');
    client.socket.send(Buffer.alloc(2 * 1024 * 1024 + 1));
    expect(await client.ended).toBe('1009');
  });

  test('disconnects attackers who flood', async () => {
    const client = open(await tokenFor({ video: { room: newRoom() } }));
    await client.heard('join');
    for (let i = 0; i < 4_000; i++) client.send({ case: 'mute', value: { sid: 'TR_x', muted: true } as never });
    expect(await client.ended).toBe('1008');
  });

  test('logs no token, no secret and no join request', async () => {
    const room = newRoom();
    const token = await tokenFor({ sub: 'ann', video: { room } });
    const join = joinRequest({ metadata: '' });
    await open(token, join).heard('join');
    await validate(`${token}x`, join);
    await open(`${token}x`, join).ended;
    const log = lines.join('\n');
    expect(log).toContain('livekit.refused');
    for (const secret of [token, SECRET, join, token.split('.')[2] ?? '']) expect(log).not.toContain(secret);
  });
});

test('has no LiveKit paths without keys', async () => {
  const other = await startTestNode();
  expect((await fetch(`${other.url}/rtc/v1/validate`)).status).toBe(404);
  await other.dispose();
});
