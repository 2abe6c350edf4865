import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestApi } from './testing/api.js';

let api: TestApi;

beforeEach(async () => {
  api = await TestApi.open();
  await api.call('POST', '/room', { body: { roomId: 'r1', maxPeers: 1 } });
});

afterEach(() => api.close());

async function post(path: string, body: unknown): Promise<[number, unknown]> {
  const answer = await api.call('POST', path, { body });

  return [answer.status, answer.text === '' || answer.type === 'text/plain' ? answer.text : answer.body];
}

async function component(type: string, options: unknown = {}): Promise<string> {
  const answer = await api.call('POST', '/room/r1/component', { body: { type, options } });
  expect(answer.status).toBe(201);

  return answer.body.data.id;
}

const STRUCTURE = { errors: 'Invalid request body structure' };
const NO_ROOM = { errors: 'Room none does not exist' };

describe('PATCH /room/:room_id/component/:id', () => {
  test('pauses a recording, and nothing else', async () => {
    const api = await TestApi.open();
    try {
      await api.call('POST', '/room', { body: { roomId: 'kitchen', videoCodec: 'h264' } });
      const add = async (type: string, options: object) =>
        (await api.call('POST', '/room/kitchen/component', { body: { type, options } })).body.data.id as string;
      const recording = await add('recording', {});
      const hls = await add('hls', {});
      const patch = (id: string, body: unknown) => api.call('PATCH', `/room/kitchen/component/${id}`, { body });
      const paused = await patch(recording, { paused: true });
      expect(paused.status).toBe(200);
      expect(paused.body.data.properties.paused).toBe(true);
      expect((await patch(hls, { paused: true })).status).toBe(400);
      for (const body of [{}, { paused: 'yes' }, { paused: null }, [], 'x']) {
        expect((await patch(recording, body)).status).toBe(400);
      }
      expect((await patch('nobody', { paused: true })).status).toBe(404);
      expect((await api.call('PATCH', '/room/hall/component/x', { body: { paused: true } })).status).toBe(404);
    } finally {
      await api.close();
    }
  });
});

describe('peers', () => {
  test('adds a peer as disconnected, with a token and the websocket address', async () => {
    const [status, body] = await post('/room/r1/peer', { type: 'webrtc', options: { enableSimulcast: false } });

    expect(status).toBe(201);
    expect(body).toEqual({
      data: {
        peer: { id: expect.any(String), type: 'webrtc', status: 'disconnected', tracks: [], metadata: null },
        token: expect.any(String),
        peer_websocket_url: 'media.example:4000/path/socket/peer/websocket',
        whip_url: 'http://media.example:4000/path/whip',
        whep_url: 'http://media.example:4000/path/whep',
      },
    });
  });

  test('accepts omitted and null options', async () => {
    expect((await post('/room/r1/peer', { type: 'webrtc' }))[0]).toBe(201);
    await api.call('POST', '/room', { body: { roomId: 'r2' } });
    expect((await post('/room/r2/peer', { type: 'webrtc', options: null }))[0]).toBe(201);
  });

  test('checks a peer in this order: type given, type known, room, limit, options', async () => {
    const odd = { options: 'odd' };
    expect(await post('/room/none/peer', odd)).toEqual([400, STRUCTURE]);
    expect(await post('/room/none/peer', [])).toEqual([400, STRUCTURE]);
    for (const type of ['invalid', null, 7, {}, ['webrtc'], 'WebRTC']) {
      expect(await post('/room/none/peer', { type, ...odd })).toEqual([400, { errors: 'Invalid peer type' }]);
    }
    expect(await post('/room/none/peer', { type: 'webrtc', ...odd })).toEqual([404, NO_ROOM]);
    expect(await post('/room/r1/peer', { type: 'webrtc', ...odd })).toEqual([400, STRUCTURE]);
    expect(await post('/room/r1/peer', { type: 'webrtc', options: { enableSimulcast: 'yes' } })).toEqual([
      400,
      STRUCTURE,
    ]);

    await post('/room/r1/peer', { type: 'webrtc' });
    expect(await post('/room/r1/peer', { type: 'webrtc', ...odd })).toEqual([
      503,
      { errors: 'Reached peer limit in room r1' },
    ]);
  });

  test('removes a peer only once', async () => {
    const { body } = await api.call('POST', '/room/r1/peer', { body: { type: 'webrtc' } });
    const path = `/room/r1/peer/${body.data.peer.id}`;

    expect((await api.call('DELETE', path)).status).toBe(204);
    expect((await api.call('DELETE', path)).body).toEqual({ errors: `Peer ${body.data.peer.id} does not exist` });
    expect((await api.call('DELETE', '/room/none/peer/p')).body).toEqual(NO_ROOM);
  });
});

describe('components', () => {
  test.each(['hls', 'file', 'sip', 'recording'])('%s is created and shown with its properties', async (type) => {
    const [status, body] = await post('/room/r1/component', { type, options: {} });

    expect(status).toBe(201);
    expect(body).toMatchObject({ data: { type, tracks: [], properties: expect.any(Object) } });
    const room = await api.call('GET', '/room/r1');
    expect(room.body.data.components).toEqual([(body as { data: unknown }).data]);
  });

  test('checks a component in this order: type given, type known, then the checks of the rooms', async () => {
    expect(await post('/room/none/component', { options: 1 })).toEqual([400, STRUCTURE]);
    for (const type of ['invalid', null, 7, ['hls'], 'HLS']) {
      expect(await post('/room/none/component', { type })).toEqual([400, { errors: 'Invalid component type' }]);
    }
    expect(await post('/room/none/component', { type: 'hls', options: 1 })).toEqual([404, NO_ROOM]);
    expect(await post('/room/r1/component', { type: 'rtsp', options: 1 })).toEqual([
      400,
      { errors: 'Components of type rtsp are disabled' },
    ]);
    for (const options of [1, 'x', [], true]) {
      expect(await post('/room/r1/component', { type: 'hls', options })).toEqual([400, STRUCTURE]);
    }
  });

  test('removes a component only once', async () => {
    const id = await component('hls');

    expect((await api.call('DELETE', `/room/r1/component/${id}`)).status).toBe(204);
    const missing = await api.call('DELETE', `/room/r1/component/${id}`);
    expect(missing.status).toBe(404);
    expect(missing.body).toEqual({ errors: `Component ${id} does not exist` });
    expect((await api.call('DELETE', `/room/none/component/${id}`)).body).toEqual(NO_ROOM);
  });
});

describe('subscriptions', () => {
  const origins = ['p1', 'unknown'];

  test.each(['hls', 'recording'])('%s in manual mode can subscribe, and the answer is text', async (type) => {
    const id = await component(type, { subscribeMode: 'manual' });

    expect(await post(`/room/r1/component/${id}/subscribe/`, { origins })).toEqual([
      201,
      'Successfully subscribed for tracks',
    ]);
    expect(api.rooms.subscriptions).toEqual([[id, origins]]);
  });

  test('accepts 10,000 origins of 255 characters in one request', async () => {
    const sentence = { errors: 'Expected at most 10000 origins of at most 255 characters' };
    for (const many of [Array.from({ length: 10_001 }, String), ['x'.repeat(256)]]) {
      expect(await post('/room/r1/component/c/subscribe', { origins: many })).toEqual([400, sentence]);
    }
    const id = await component('hls', { subscribeMode: 'manual' });
    const all = Array.from({ length: 10_000 }, (_, i) => `${i}`.padStart(255, '0'));
    expect((await post(`/room/r1/component/${id}/subscribe`, { origins: all }))[0]).toBe(201);
  });

  test('checks subscriptions in this order: origins, room, component, kind, mode', async () => {
    for (const body of [{}, { origins: null }, { origins: 'p1' }, { origins: [1] }, { origins: {} }, []]) {
      expect(await post('/room/none/component/c/subscribe', body)).toEqual([400, STRUCTURE]);
    }
    expect(await post('/room/none/component/c/subscribe', { origins })).toEqual([404, NO_ROOM]);
    expect(await post('/room/r1/component/c/subscribe', { origins })).toEqual([
      400,
      { errors: 'Component c does not exist' },
    ]);
    const file = await component('file');
    expect(await post(`/room/r1/component/${file}/subscribe`, { origins })).toEqual([
      400,
      { errors: 'Subscribe mode is supported only for HLS and Recording components' },
    ]);
    const hls = await component('hls');
    expect(await post(`/room/r1/component/${hls}/subscribe`, { origins })).toEqual([
      400,
      { errors: `Component ${hls} option \`subscribe_mode\` is set to :auto` },
    ]);
  });
});

describe('SIP calls', () => {
  test('schedules a call with a text answer, and ends it', async () => {
    const id = await component('sip');

    expect(await post(`/sip/r1/${id}/call`, { phoneNumber: '+48 123' })).toEqual([
      201,
      'Successfully schedule calling phone_number: +48 123',
    ]);
    expect((await api.call('DELETE', `/sip/r1/${id}/call`)).status).toBe(204);
    expect(api.rooms.calls).toEqual(['+48 123', 'hang up']);
  });

  test('checks calls in this order: number, room, component, kind', async () => {
    const number = { phoneNumber: '1' };
    for (const body of [{}, { phoneNumber: null }, { phoneNumber: 1 }, []]) {
      expect(await post('/sip/none/c/call', body)).toEqual([400, STRUCTURE]);
    }
    const hls = await component('hls');
    const cases: [string, number, string][] = [
      ['/sip/none/c/call', 404, 'Room none does not exist'],
      ['/sip/r1/c/call', 400, 'Component c does not exist'],
      [`/sip/r1/${hls}/call`, 400, `Component ${hls} is not a SIP component`],
    ];
    for (const [path, status, errors] of cases) {
      expect(await post(path, number)).toEqual([status, { errors }]);
      const ended = await api.call('DELETE', path);
      expect(ended.status).toBe(status);
      expect(ended.body).toEqual({ errors });
    }
  });
});

test('wraps the health report in data', async () => {
  expect((await api.call('GET', '/health')).body).toEqual({
    data: {
      status: 'UP',
      uptime: 12,
      version: '1.2.3',
      gitCommit: 'dev',
      distribution: { enabled: false, nodeStatus: 'DOWN', nodesInCluster: 0 },
    },
  });
});
