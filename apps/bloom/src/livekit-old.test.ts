// Version 0 of LiveKit's signalling on a node: joins by parameters, and offers of the server.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LeaveRequest_Action } from '@livekit/protocol';
import { WebSocket } from 'ws';
import { type Claims, Client, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode, type TestNode } from './testing/test-node.js';

let node: TestNode;
let rooms = 0;
const sockets: WebSocket[] = [];
const newRoom = (): string => `old-${++rooms}`;

beforeAll(async () => {
  node = await startTestNode({ JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` });
});
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await node.dispose();
});

async function join(claims: Claims, parameters = 'protocol=16&auto_subscribe=1&sdk=go'): Promise<Client> {
  const url = `${node.url.replace('http', 'ws')}/rtc?access_token=${await tokenFor(claims)}&${parameters}`;
  const client = new Client(new WebSocket(url));
  sockets.push(client.socket);

  return client;
}

test('offers a connection on which the client receives right after the join', async () => {
  const client = await join({ video: { room: newRoom() } });
  const joined = await client.heard('join');
  expect(joined).toMatchObject({ subscriberPrimary: true, iceServers: [{ username: expect.any(String) }] });
  const offer = await client.heard('offer');
  expect(offer).toMatchObject({ type: 'offer', id: 1 });
  expect(offer?.sdp).toContain('a=setup:actpass\r\n');
  expect(offer?.sdp).toContain('m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n');
});

test.each([
  ['may not subscribe', { canSubscribe: false }, 'protocol=16'],
  ['is too old to wait for an offer', {}, 'protocol=2'],
])('does not make a client that %s wait for an offer', async (_what, grants, parameters) => {
  const client = await join({ video: { room: newRoom(), ...grants } }, parameters);
  expect(await client.heard('join')).toMatchObject({ subscriberPrimary: false });
  client.send({ case: 'ping', value: 1n });
  await client.heard('pong');
  expect(client.frames.some((frame) => frame.case === 'offer')).toBe(false);
});

test('takes attributes of a client that may set its own', async () => {
  const room = newRoom();
  const attributes = Buffer.from('{"mood":"good"}').toString('base64');
  const parameters = `protocol=16&attributes=${encodeURIComponent(attributes)}`;
  const refused = await join({ video: { room } }, parameters);
  expect(await refused.ended).toBe('401 permissions denied');
  const client = await join({ video: { room, canUpdateOwnMetadata: true } }, parameters);
  expect((await client.heard('join'))?.participant?.attributes).toEqual({ mood: 'good' });
});

test('resumes, and offers with new ICE credentials', async () => {
  const room = newRoom();
  const first = await join({ video: { room } });
  const sid = (await first.heard('join'))?.participant?.sid ?? '';
  const before = (await first.heard('offer'))?.sdp ?? '';
  const second = await join({ video: { room } }, `protocol=16&reconnect=1&sid=${sid}`);
  await second.heard('reconnect');
  const offer = await second.heard('offer');
  const ufrag = /a=ice-ufrag:(\S+)/;
  expect(offer?.sdp).toMatch(ufrag);
  expect(ufrag.exec(offer?.sdp ?? '')?.[1]).not.toBe(ufrag.exec(before)?.[1]);
});

test.each([
  ['nothing', ''],
  ['garbage', 'garbage'],
  ['half an answer', 'v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=application 9 UDP/DT'],
  ['300 KiB', `v=0\r\n${'a=x\r\n'.repeat(60_000)}`],
])('starts a client over whose answer is %s', async (_what, sdp) => {
  const client = await join({ video: { room: newRoom() } });
  await client.heard('offer');
  client.send({ case: 'answer', value: { type: 'answer', sdp, id: 1 } as never });
  expect(await client.heard('leave')).toMatchObject({ action: LeaveRequest_Action.RECONNECT });
  expect(await client.ended).toBe('1000');
});

test('ignores answers to offers that it has not made', async () => {
  const client = await join({ video: { room: newRoom() } });
  await client.heard('offer');
  for (let id = 2; id < 50; id++) client.send({ case: 'answer', value: { type: 'answer', sdp: 'x', id } as never });
  client.send({ case: 'ping', value: 1n });
  await client.heard('pong');
  expect(client.frames.some((frame) => frame.case === 'leave')).toBe(false);
});
