import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestApi } from './testing/api.js';

let api: TestApi;
let peer: string;

beforeEach(async () => {
  api = await TestApi.open();
  await api.call('POST', '/room', { body: { roomId: 'r1' } });
  peer = (await api.call('POST', '/room/r1/peer', { body: { type: 'webrtc' } })).body.data.peer.id;
  api.rooms.publish('r1', peer, { id: '5:mic', type: 'audio', metadata: null });
});
afterEach(() => api.close());

const STRUCTURE = [400, { errors: 'Invalid request body structure' }];

async function call(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown[]> {
  const answer = await api.call(method, path, body === undefined ? {} : { body });

  return [answer.status, answer.text === '' ? '' : answer.body];
}

describe('PATCH of a peer', () => {
  test('changes the fields in the body and returns the peer', async () => {
    const [status, body] = await call('PATCH', `/room/r1/peer/${peer}`, {
      metadata: { name: 'Ann' },
      permissions: { publish: ['audio'], subscribe: null },
      unknown: 'field',
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      data: {
        id: peer,
        metadata: { peer: null, server: { name: 'Ann' } },
        permissions: { publish: ['audio'], subscribe: true, metadata: true },
      },
    });
    expect(await call('PATCH', `/room/r1/peer/${peer}`, {})).toEqual([200, body]);
    expect(await call('PATCH', `/room/r1/peer/${peer}`, { metadata: null })).toMatchObject([
      200,
      { data: { metadata: null, permissions: { publish: ['audio'] } } },
    ]);
  });

  test('refuses other permissions, oversized metadata and unknown peers', async () => {
    for (const permissions of [[], 'all', { publish: 'audio' }, { publish: ['screen'] }, { metadata: 0 }]) {
      expect(await call('PATCH', `/room/r1/peer/${peer}`, { permissions })).toEqual(STRUCTURE);
    }
    expect(await call('PATCH', `/room/r1/peer/${peer}`, { metadata: 'x'.repeat(65_536) })).toEqual([
      400,
      { errors: 'Expected metadata of at most 65536 bytes' },
    ]);
    expect(await call('PATCH', '/room/r1/peer/zed', {})).toEqual([404, { errors: 'Peer zed does not exist' }]);
    expect(await call('PATCH', '/room/none/peer/zed', {})).toEqual([404, { errors: 'Room none does not exist' }]);
  });
});

describe('PATCH of a room', () => {
  test('changes the fields in the body, and null unsets one', async () => {
    const [, first] = await call('PATCH', '/room/r1', { metadata: ['soup'], maxPeers: 2, peerlessPurgeTimeout: 5 });
    expect(first).toMatchObject({ data: { config: { metadata: ['soup'], maxPeers: 2, peerlessPurgeTimeout: 5 } } });
    const [, second] = await call('PATCH', '/room/r1', { metadata: null, maxPeers: null, roomId: 'r2' });
    expect(second).toMatchObject({ data: { config: { roomId: 'r1', maxPeers: null, peerlessPurgeTimeout: 5 } } });
    expect(Object.keys((second as { data: { config: object } }).data.config)).not.toContain('metadata');
  });

  test('shows data events if there are any', async () => {
    const configOf = async (dataEvents: unknown): Promise<object> => {
      const [, body] = await call('PATCH', '/room/r1', { dataEvents });
      return (body as { data: { config: object } }).data.config;
    };
    expect(await configOf(['chat'])).toMatchObject({ dataEvents: ['chat'] });
    for (const none of [[], null]) expect(await configOf(none)).not.toHaveProperty('dataEvents');
    const [, created] = await call('POST', '/room', { dataEvents: ['chat'] });
    expect(created).toMatchObject({ data: { room: { config: { dataEvents: ['chat'] } } } });
    const many = Array.from({ length: 17 }, (_, n) => `l${n}`);
    expect((await call('PATCH', '/room/r1', { dataEvents: many }))[0]).toBe(400);
  });

  test('refuses the same values as POST', async () => {
    expect(await call('PATCH', '/room/r1', { maxPeers: -1 })).toEqual([
      400,
      { errors: 'Expected maxPeers to be a number, got: -1' },
    ]);
    expect(await call('PATCH', '/room/none', {})).toEqual([404, { errors: 'Room none does not exist' }]);
  });
});

describe('a track', () => {
  test('mutes and removes a track', async () => {
    const path = `/room/r1/peer/${peer}/track/5%3Amic`;
    expect(await call('PATCH', path, { muted: true })).toEqual([
      200,
      { data: { id: '5:mic', type: 'audio', metadata: null, muted: true } },
    ]);
    expect(await call('PATCH', path, { muted: 'yes' })).toEqual(STRUCTURE);
    expect(await call('PATCH', path, {})).toEqual(STRUCTURE);
    expect(await call('DELETE', path)).toEqual([204, '']);
    expect(await call('DELETE', path)).toEqual([404, { errors: 'Track 5:mic does not exist' }]);
  });
});

test('accepts a reason on DELETE of a peer', async () => {
  const path = `/room/r1/peer/${peer}`;
  expect(await call('DELETE', path, { reason: 7 })).toEqual(STRUCTURE);
  expect(await call('DELETE', path, { reason: 'é'.repeat(51) })).toEqual([
    400,
    { errors: 'Expected a reason of at most 100 bytes' },
  ]);
  expect(await call('DELETE', path, { reason: 'é'.repeat(50) })).toEqual([204, '']);
  expect(api.rooms.removals).toEqual(['é'.repeat(50)]);
});

describe('a message', () => {
  test('accepts a message with any JSON value as its data', async () => {
    for (const data of [null, 0, 'text', { deep: [1] }]) {
      expect(await call('POST', '/room/r1/message', { topic: 'poll', data, to: [peer] })).toEqual([
        202,
        { data: { delivered: 0 } },
      ]);
    }
    await call('POST', '/room/r1/message', { topic: 'poll', data: 1, to: null });
    expect(api.rooms.messages.at(-1)).toEqual({ topic: 'poll', data: 1 });
  });

  test('refuses a message without a topic or data, or one that is too large', async () => {
    for (const body of [{ topic: 'a' }, { data: 1 }, { topic: '', data: 1 }, { topic: 'a', data: 1, to: 'all' }]) {
      expect(await call('POST', '/room/r1/message', body)).toEqual(STRUCTURE);
    }
    expect(await call('POST', '/room/r1/message', { topic: 'a', data: 'x'.repeat(16_383) })).toEqual([
      400,
      { errors: 'Expected data of at most 16384 bytes' },
    ]);
    expect(await call('POST', '/room/r1/message', { topic: 'a', data: 1, to: ['zed'] })).toEqual([
      404,
      { errors: 'Peer zed does not exist' },
    ]);
  });
});
