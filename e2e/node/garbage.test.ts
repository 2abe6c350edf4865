import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { encodePeerMessage } from '@bloom/protocol';
import { codePoint } from '@bloom/time/testing';
import fc from 'fast-check';
import { CheckedApi, operations } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';

jest.setTimeout(60_000);

let node: Node;
let api: CheckedApi;

beforeAll(async () => {
  node = await startProgram();
  api = new CheckedApi(node.url);
});
afterAll(() => node.dispose());

/** Values that are nearly right, and arbitrary ones. */
const value = fc.oneof(
  fc.constantFrom<unknown>('webrtc', 'hls', 'h264', 'auto', true, null, 0, 1, -1, 1.5, 2 ** 53, '', '..', [], {}),
  fc.jsonValue({ maxDepth: 3 }),
);
const field = fc.constantFrom(
  'roomId',
  'maxPeers',
  'videoCodec',
  'webhookUrl',
  'peerlessPurgeTimeout',
  'peerDisconnectedTimeout',
  'type',
  'options',
  'origins',
  'phoneNumber',
  'enableSimulcast',
  '__proto__',
  'constructor',
  'toString',
);
const body = fc.oneof(
  { weight: 4, arbitrary: fc.dictionary(field, value, { maxKeys: 4 }) },
  { weight: 1, arbitrary: value },
);
const part = fc.oneof(
  fc.constantFrom('nobody', '%00', '%2E%2E', '..%2F..%2Fetc%2Fpasswd', '%zz', '%F0%9F%8C%B8', 'a'.repeat(2_000), '{}'),
  fc.string({ unit: codePoint(fc), minLength: 1, maxLength: 20 }).map((text) => encodeURIComponent(text)),
);

test('gives every request a documented response, and none 500', async () => {
  const rooms = [await api.room({ videoCodec: 'h264' }), await api.room({ maxPeers: 1 })];
  const requests = fc.sample(
    fc.record({
      operation: fc.constantFrom(...operations),
      parts: fc.array(fc.oneof(fc.constantFrom(...rooms), part), { minLength: 2, maxLength: 2 }),
      query: fc.constantFrom('', '?', '?scope=cluster', '?_HLS_msn=x&_HLS_part=-1', '?%zz=%', '?_HLS_skip'),
      body,
    }),
    500,
  );
  const statuses = new Set<number>();
  for (const { operation, parts, query, body: given } of requests) {
    // The two rooms stay, so that requests find something.
    const { method, template } = operation;
    let at = 0;
    const path = template.replaceAll(/\{\w+\}/g, () => parts[at++] ?? 'x');
    if (operation.id === 'delete_room' && rooms.includes(parts[0] ?? '')) continue;
    // A draining node accepts no rooms, so later requests would find none.
    if (operation.id === 'drain_node') continue;
    const answer = await api.call(method, `${path}${query}`, method === 'POST' ? given : undefined);
    statuses.add(answer.status);
  }

  expect([...statuses].filter((status) => status >= 500 && status !== 503)).toEqual([]);
  for (const status of [200, 201, 400, 404]) expect(statuses).toContain(status);
  for (const room of rooms) expect((await api.call('GET', `/room/${room}`)).status).toBe(200);
  expect(node.output()).not.toMatch(/http\.failed|\[error\]/);
});

test('harms no other client when a client sends garbage over the peer websocket', async () => {
  const room = await api.room();
  const witness = await PeerConnection.joined(node.url, (await api.peer(room)).token, 'witness');
  const type = fc.constantFrom(
    'connect',
    'disconnect',
    'updateEndpointMetadata',
    'updateTrackMetadata',
    'disableTrackEncoding',
    'custom',
    'enableTrackEncoding',
    'muteTrack',
    'renegotiateTracks',
    'sdpOffer',
    'candidate',
    'setTargetTrackVariant',
    '',
  );
  const data = fc.oneof(
    fc.record({ type, data: value }),
    fc.dictionary(fc.constantFrom('metadata', 'trackId', 'encoding', 'sdpOffer', 'midToTrackId', 'type'), value),
    value,
  );
  const events = fc.sample(fc.oneof(fc.record({ type, data }), value), 400);
  const texts = fc.sample(fc.string({ maxLength: 50 }), 50);
  for (let at = 0; at < events.length; at += 20) {
    const client = await PeerConnection.joined(node.url, (await api.peer(room)).token, at);
    for (const event of events.slice(at, at + 20)) {
      client.socket.send(encodePeerMessage({ type: 'mediaEvent', data: JSON.stringify(event) }));
    }
    for (const text of texts.slice(at / 8, at / 8 + 3)) {
      client.socket.send(encodePeerMessage({ type: 'mediaEvent', data: text }));
      client.socket.send(Buffer.from(text));
    }
    client.socket.close();
    await client.closed;
  }
  witness.send({ type: 'custom', data: { type: 'renegotiateTracks' } });
  expect((await witness.next('custom')).data.type).toBe('offerData');
  expect((await api.call('DELETE', `/room/${room}`)).status).toBe(204);
  expect(await witness.closed).toBe('1000 Room stopped');
  expect(node.output()).not.toMatch(/\[error\]/);
});
