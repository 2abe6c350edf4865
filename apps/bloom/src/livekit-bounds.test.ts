// Limits of LiveKit's signalling, and names that are special in JavaScript.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RequestResponse_Reason } from '@livekit/protocol';
import { RoomServiceClient } from 'livekit-server-sdk';
import { WebSocket } from 'ws';
import { type Claims, Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode, type TestNode } from './testing/test-node.js';

let node: TestNode;
let rooms = 0;
const sockets: WebSocket[] = [];
const newRoom = (): string => `bounds-${++rooms}`;

beforeAll(async () => {
  node = await startTestNode({ JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` });
});
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await node.dispose();
});

async function join(claims: Claims): Promise<Client> {
  const url = `${node.url.replace('http', 'ws')}/rtc/v1`;
  const client = new Client(
    new WebSocket(`${url}?access_token=${await tokenFor(claims)}&join_request=${joinRequest()}`),
  );
  sockets.push(client.socket);
  await client.heard('join');

  return client;
}

async function answersPing(client: Client): Promise<boolean> {
  const timestamp = BigInt(client.frames.length + 1);
  client.send({ case: 'pingReq', value: { timestamp, rtt: 0n } as never });
  await client.until('pongResp', (pong) => pong?.lastPingTimestamp === timestamp);

  return true;
}

const OFFER = `${[
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'a=group:BUNDLE 0',
  'm=audio 9 UDP/TLS/RTP/SAVPF 96',
  'c=IN IP4 0.0.0.0',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  `a=fingerprint:sha-256 ${Array(32).fill('AB').join(':')}`,
  'a=setup:actpass',
  'a=mid:0',
  'a=recvonly',
  'a=rtpmap:96 opus/48000/2',
].join('\r\n')}\r\n`;

/** Names that mean something to objects, and one with characters that protocols mind. */
const SPECIAL = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'PA_x', 'a\r\nb: c\u0000😀'];

describe('names that are special elsewhere', () => {
  test.each(SPECIAL)('lets people with the identity and the room %j meet like anybody', async (name) => {
    const room = `${name}${++rooms}`;
    const odd = await join({ sub: name, name, video: { room } });
    const ann = await join({ video: { room } });
    expect((await ann.heard('join'))?.otherParticipants.map(({ identity }) => identity)).toEqual([name]);
    await odd.until('update', (update) => update?.participants[0]?.identity === 'ann');
    const service = new RoomServiceClient(node.url, KEY, SECRET);
    expect(await service.getParticipant(room, name)).toMatchObject({ identity: name });
    await service.removeParticipant(room, name);
    await odd.heard('leave');
    expect(await answersPing(ann)).toBe(true);
  });

  test.each(['__proto__', 'constructor', 'hasOwnProperty'])('names the room %s like its own id', async (room) => {
    const ann = await join({ video: { room } });
    expect((await ann.heard('join'))?.room?.name).toBe(room);
    expect(await new RoomServiceClient(node.url, KEY, SECRET).listRooms([room])).toMatchObject([{ name: room }]);
  });

  test('passes attributes with special names on, and changes no object by them', async () => {
    const room = newRoom();
    const attributes = JSON.parse('{"__proto__": "p", "constructor": "c", "toString": "s"}') as Record<string, string>;
    const eve = await join({ sub: 'eve', attributes, video: { room, canUpdateOwnMetadata: true } });
    const ann = await join({ video: { room } });
    const shown = (await ann.heard('join'))?.otherParticipants[0]?.attributes ?? {};
    expect(shown).toMatchObject({ constructor: 'c', toString: 's' });
    eve.send({ case: 'updateMetadata', value: { attributes: { constructor: 'd' }, requestId: 1 } as never });
    await ann.until('update', (update) => update?.participants[0]?.attributes['constructor'] === 'd');
    expect(({} as Record<string, unknown>)['p']).toBeUndefined();
    expect(await answersPing(eve)).toBe(true);
  });
});

describe('limits', () => {
  test('takes a frame with the two descriptions of a large call', async () => {
    const client = await join({ video: { room: newRoom() } });
    const description = { type: 'offer', sdp: 'a=x\r\n'.repeat(50_000) };
    client.send({ case: 'syncState', value: { offer: description, answer: description } as never });
    expect(await answersPing(client)).toBe(true);
  });

  test('disconnects attackers who negotiate without a pause', async () => {
    const client = await join({ video: { room: newRoom() } });
    for (let id = 1; id <= 200; id++) client.send({ case: 'offer', value: { type: 'offer', sdp: OFFER, id } as never });
    expect(await client.ended).toBe('1008');
  });

  test('answers a client that negotiates often', async () => {
    const client = await join({ video: { room: newRoom() } });
    for (let id = 1; id <= 20; id++) client.send({ case: 'offer', value: { type: 'offer', sdp: OFFER, id } as never });
    await client.until('answer', (answer) => answer?.id === 20);
    expect(client.frames.some((frame) => frame.case === 'leave')).toBe(false);
  });

  test('refuses changes of metadata beyond their rate, says so, and serves the client on', async () => {
    const client = await join({ video: { room: newRoom(), canUpdateOwnMetadata: true } });
    for (let requestId = 1; requestId <= 40; requestId++) {
      client.send({ case: 'updateMetadata', value: { metadata: `${requestId}`, requestId } as never });
    }
    await client.until('requestResponse', (answer) => answer?.requestId === 40);
    const [first] = client.frames.flatMap(({ case: which, value }) => (which === 'requestResponse' ? [value] : []));
    expect(first).toMatchObject({ reason: RequestResponse_Reason.LIMIT_EXCEEDED, message: 'too many changes' });
    await client.until('requestResponse', (answer) => answer?.reason === RequestResponse_Reason.OK);
    expect(await answersPing(client)).toBe(true);
  });

  test.each([
    ['metadata', { metadata: 'x'.repeat(64 * 1024 + 1) }],
    ['attributes', { attributes: Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`k${i}`, 'v'])) }],
    ['attributes together', { attributes: { a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) } }],
    ['name', { name: 'x'.repeat(257) }],
  ])('refuses a change to too much %s, and changes nothing', async (_what, change) => {
    const room = newRoom();
    const client = await join({ video: { room, canUpdateOwnMetadata: true } });
    client.send({ case: 'updateMetadata', value: { ...change, requestId: 7 } as never });
    await client.until('requestResponse', (answer) => answer?.reason === RequestResponse_Reason.LIMIT_EXCEEDED);
    const [peer] = (await node.request('GET', `/room/${room}`)).body.data.peers;
    expect(peer.metadata.server).toMatchObject({ name: '', metadata: '', attributes: {} });
  });

  test('compares thousands of tracks that a resumed client claims, and starts it over', async () => {
    const client = await join({ video: { room: newRoom() } });
    const publishTracks = Array.from({ length: 3_000 }, (_, i) => ({ cid: '', track: { sid: `TR_${i}` } }));
    client.send({ case: 'syncState', value: { publishTracks } as never });
    await client.heard('leave');
    expect(await client.ended).toBe('1000');
  });

  test('tells a client that names an unknown track of a million characters nothing, and serves it on', async () => {
    const client = await join({ video: { room: newRoom() } });
    const sid = 'x'.repeat(1_000_000);
    client.send({ case: 'trackSetting', value: { trackSids: [sid] } as never });
    client.send({ case: 'subscription', value: { trackSids: [sid], subscribe: true } as never });
    expect(await answersPing(client)).toBe(true);
  });
});
