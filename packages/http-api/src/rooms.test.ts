import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { RoomErrorCode } from '@bloom/rooms';
import { TestApi } from './testing/api.js';

let api: TestApi;

beforeEach(async () => {
  api = await TestApi.open();
});

afterEach(() => api.close());

const UNSET = {
  maxPeers: null,
  videoCodec: null,
  webhookUrl: null,
  peerlessPurgeTimeout: null,
  peerDisconnectedTimeout: null,
};

describe('POST /room', () => {
  test('creates a room with a generated id if no field is given', async () => {
    for (const body of [undefined, {}, { ...UNSET, roomId: null }]) {
      const answer = await api.call('POST', '/room', body === undefined ? {} : { body });

      expect(answer.status).toBe(201);
      const { id } = answer.body.data.room;
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
      expect(answer.body).toEqual({
        data: {
          room: { id, config: { roomId: id, ...UNSET }, components: [], peers: [] },
          service_address: 'media.example:4000/path',
          jellyfish_address: 'media.example:4000/path',
          fishjam_address: 'media.example:4000/path',
        },
      });
    }
  });

  test('stores every field, and ignores unknown ones', async () => {
    const config = {
      roomId: 'Room-1',
      maxPeers: 0,
      videoCodec: 'h264',
      webhookUrl: 'http://h:1/',
      peerlessPurgeTimeout: 1,
      peerDisconnectedTimeout: 3600,
    };
    const answer = await api.call('POST', '/room', { body: { ...config, unknown: [1] } });

    expect(answer.status).toBe(201);
    expect(answer.body.data.room.config).toEqual(config);
  });

  const roomId = (value: string) =>
    `Cannot add room with id "${value}" - roomId may contain only alphanumeric characters and hyphens`;
  const maxPeers = (value: string) => `Expected maxPeers to be a number, got: ${value}`;
  const codec = (value: string) => `Expected videoCodec to be 'h264' or 'vp8', got: ${value}`;
  const webhook = (value: string) => `Expected webhookUrl to be valid URL, got: ${value}`;
  const purge = (value: string) => `Expected peerlessPurgeTimeout to be a positive integer, got: ${value}`;
  const dataEvents = (value: string) =>
    `Expected dataEvents to be a list of up to 16 labels of 1 to 64 bytes, without roomMessage, got: ${value}`;
  const disconnected = (value: string) => `Expected peerDisconnectedTimeout to be a positive integer, got: ${value}`;

  test.each<[string, unknown, string]>([
    ['roomId', 'test_room', roomId('test_room')],
    ['roomId', '', roomId('')],
    ['roomId', 'a b', roomId('a b')],
    ['roomId', 'a\n', roomId('a\n')],
    ['roomId', '../x', roomId('../x')],
    ['roomId', 'é', roomId('é')],
    ['roomId', 7, roomId('7')],
    ['roomId', ['a'], roomId('["a"]')],
    ['roomId', false, roomId('false')],
    ['maxPeers', '10', maxPeers('10')],
    ['maxPeers', 'nan', maxPeers('nan')],
    ['maxPeers', -1, maxPeers('-1')],
    ['maxPeers', 1.5, maxPeers('1.5')],
    ['maxPeers', {}, maxPeers('{}')],
    ['maxPeers', true, maxPeers('true')],
    ['maxPeers', 2 ** 60, maxPeers('1152921504606847000')],
    ['videoCodec', 'H264', codec('H264')],
    ['videoCodec', 'nonexistentcodec', codec('nonexistentcodec')],
    ['videoCodec', 1, codec('1')],
    ['videoCodec', ['h264'], codec('["h264"]')],
    ['webhookUrl', 'nonexistent', webhook('nonexistent')],
    ['webhookUrl', 'ftp://h/', webhook('ftp://h/')],
    ['webhookUrl', 'http:///x', webhook('http:///x')],
    ['webhookUrl', 'http:h', webhook('http:h')],
    ['webhookUrl', 'http://h/a b', webhook('http://h/a b')],
    ['webhookUrl', 'http://h:99999/', webhook('http://h:99999/')],
    ['webhookUrl', 5, webhook('5')],
    ['webhookUrl', { url: 'x' }, webhook('{"url":"x"}')],
    ['peerlessPurgeTimeout', 0, purge('0')],
    ['peerlessPurgeTimeout', 'nan', purge('nan')],
    ['peerlessPurgeTimeout', 2.5, purge('2.5')],
    ['peerlessPurgeTimeout', [], purge('[]')],
    ['peerDisconnectedTimeout', -5, disconnected('-5')],
    ['peerDisconnectedTimeout', '1', disconnected('1')],
    ['peerDisconnectedTimeout', false, disconnected('false')],
    ['dataEvents', 'chat', dataEvents('chat')],
    ['dataEvents', [''], dataEvents('')],
    ['dataEvents', ['chat', 7], dataEvents('7')],
    ['dataEvents', ['roomMessage'], dataEvents('roomMessage')],
    ['dataEvents', ['ä'.repeat(33)], dataEvents('ä'.repeat(33))],
  ])('refuses %s = %j', async (field, value, message) => {
    const answer = await api.call('POST', '/room', { body: { [field]: value } });

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ errors: message });
  });

  test.each([
    'http://h',
    'https://example.com:8443/hook?x=1',
    'HTTP://u:p@h/',
    'http://127.0.0.1:4000/x',
    'http://[::1]/',
  ])('accepts webhookUrl = %s', async (webhookUrl) => {
    expect((await api.call('POST', '/room', { body: { webhookUrl } })).status).toBe(201);
  });

  test('reports the first invalid field in the documented order', async () => {
    const wrong: Record<string, unknown> = {
      peerDisconnectedTimeout: 0,
      peerlessPurgeTimeout: 0,
      webhookUrl: 0,
      videoCodec: 0,
      maxPeers: '0',
      roomId: '!',
    };
    const order = ['roomId', 'maxPeers', 'videoCodec', 'webhookUrl', 'peerlessPurgeTimeout', 'peerDisconnectedTimeout'];

    for (const field of order) {
      const answer = await api.call('POST', '/room', { body: wrong });
      expect(answer.body.errors).toContain(field);
      delete wrong[field];
    }
  });

  test('refuses an existing id, but only after all other checks', async () => {
    await api.call('POST', '/room', { body: { roomId: 'r1' } });

    const again = await api.call('POST', '/room', { body: { roomId: 'r1' } });
    expect(again.status).toBe(400);
    expect(again.body).toEqual({ errors: 'Cannot add room with id "r1" - room already exists' });
    const invalid = await api.call('POST', '/room', { body: { roomId: 'r1', maxPeers: 'x' } });
    expect(invalid.body.errors).toBe(maxPeers('x'));
  });

  test('quotes a number too large to represent as Infinity', async () => {
    const headers = { 'content-type': 'application/json' };
    const answer = await api.raw('POST', '/room', { headers, body: '{"maxPeers":1e400}' });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({ errors: maxPeers('Infinity') });
  });

  test.each(['{"dataEvents":[%]}', '{"roomId":%}', '{"webhookUrl":%}'])(
    'refuses %s with an object whose length cannot be compared',
    async (body) => {
      const answer = await api.raw('POST', '/room', {
        headers: { 'content-type': 'application/json' },
        body: body.replace('%', '{"length":{"toString":null,"valueOf":null}}'),
      });
      expect(answer.status).toBe(400);
    },
  );

  test('truncates long values in the message, and survives deeply nested ones', async () => {
    const long = await api.call('POST', '/room', { body: { maxPeers: 'x'.repeat(100_000) } });
    expect(long.status).toBe(400);
    expect(long.body.errors.length).toBeLessThan(1_100);

    const depth = 200_000;
    const nested = await api.raw('POST', '/room', {
      headers: { 'content-type': 'application/json' },
      body: `{"maxPeers":${'['.repeat(depth)}${']'.repeat(depth)}}`,
    });
    expect(nested.status).toBe(400);

    const tooLong = await api.call('POST', '/room', { body: { roomId: 'a'.repeat(256) } });
    expect(tooLong.body.errors).toContain('at most 255 characters');
  });
});

describe('GET /room', () => {
  test('lists the rooms of this node', async () => {
    expect((await api.call('GET', '/room')).body).toEqual({ data: [] });
    const { body } = await api.call('POST', '/room', { body: { roomId: 'r1' } });
    await api.call('POST', '/room');

    const answer = await api.call('GET', '/room?scope=other');
    expect(answer.status).toBe(200);
    expect(answer.body.data).toHaveLength(2);
    expect(answer.body.data).toContainEqual(body.data.room);
    expect(Object.keys(answer.body)).toEqual(['data']);
  });

  test('lists the nodes that did not answer with scope=cluster', async () => {
    expect((await api.call('GET', '/room?scope=cluster')).body).toEqual({ data: [], unreachable: ['bloom@gone'] });
  });
});

describe('one room', () => {
  test('shows a room, deletes it and then does not know it', async () => {
    const { body } = await api.call('POST', '/room', { body: { roomId: 'r1' } });

    const shown = await api.call('GET', '/room/r1');
    expect(shown.status).toBe(200);
    expect(shown.body).toEqual({ data: body.data.room });

    const deleted = await api.call('DELETE', '/room/r1');
    expect(deleted.status).toBe(204);
    expect(deleted.text).toBe('');
    expect(deleted.headers).not.toHaveProperty('content-type');

    for (const method of ['GET', 'DELETE'] as const) {
      const missing = await api.call(method, '/room/r1');
      expect(missing.status).toBe(404);
      expect(missing.body).toEqual({ errors: 'Room r1 does not exist' });
    }
  });

  test('decodes an id with odd characters before the lookup', async () => {
    for (const [path, id] of [
      ['%2Fetc', '/etc'],
      ['..', '..'],
      ['a%20b', 'a b'],
      ['%C3%A9', 'é'],
    ]) {
      const answer = await api.raw('GET', `/room/${path}`);
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body)).toEqual({ errors: `Room ${id} does not exist` });
    }
  });
});

describe('errors of the rooms', () => {
  const expected: Record<RoomErrorCode, number> = {
    ROOM_NOT_FOUND: 404,
    ROOM_EXISTS: 400,
    ROOM_FAILED: 400,
    PEER_NOT_FOUND: 404,
    TRACK_NOT_FOUND: 404,
    PEER_CONNECTED: 409,
    TOO_MANY_CONNECTIONS: 429,
    SESSION_NOT_FOUND: 404,
    PEER_LIMIT: 503,
    INVITATION_USED: 410,
    INVITATION_LIMIT: 503,
    PEER_TYPE_DISABLED: 400,
    COMPONENT_NOT_FOUND: 404,
    COMPONENT_TYPE_DISABLED: 400,
    COMPONENT_LIMIT: 400,
    INCOMPATIBLE_CODEC: 400,
    INVALID_OPTIONS: 400,
    MISSING_OPTION: 400,
    FILE_NOT_FOUND: 404,
    NOT_SUBSCRIBABLE: 400,
    SUBSCRIBE_MODE_AUTO: 400,
    NOT_A_SIP_COMPONENT: 400,
    NOT_A_RECORDING: 400,
    OWNER_UNREACHABLE: 503,
    MEMBER_SILENT: 503,
    NO_NODE: 503,
    DRAINING: 503,
  };

  test.each(Object.entries(expected) as [RoomErrorCode, number][])('answers %s with %d', async (code, status) => {
    api.rooms.fail(code, 'the text for the client');
    const headers = { 'content-type': 'application/json' };
    const answer = await api.raw('POST', '/room/r1/component', { headers, body: '{"type": "hls"}' });

    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({ errors: 'the text for the client' });
  });

  test('answers any other error with 500 and a line in the log', async () => {
    api.rooms.fail(new Error('a bug'));
    const answer = await api.raw('GET', '/room/r1');

    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body)).toEqual({ errors: { detail: 'Internal Server Error' } });
  });
});
