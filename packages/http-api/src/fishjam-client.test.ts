import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestApi, TOKEN } from './testing/api.js';

const authorization = `Bearer ${TOKEN}`;
const headers = { authorization, 'content-type': 'application/json', 'x-fishjam-api-client': 'python-server/0.31.1' };
const SUBSCRIPTION = { subscribeMode: 'auto', subscriptions: { peers: [], tracks: [] } };

let api: TestApi;
beforeEach(async () => void (api = await TestApi.open()));
afterEach(() => api.close());

async function ask(method: string, path: string, body?: unknown) {
  return askWith(headers, { method, path, body });
}

async function askWith(
  given: Record<string, string>,
  { method, path, body }: { method: string; path: string; body?: unknown },
) {
  const answer = await api.raw(method, path, {
    headers: given,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: answer.body.startsWith('{') ? JSON.parse(answer.body) : answer.body };
}

describe('a Fishjam client', () => {
  const options = { roomId: 'r1', maxPeers: null, roomType: 'conference', public: false };

  test('omits an unset codec from rooms, and adds subscriptions to peers', async () => {
    const created = await ask('POST', '/room', options);
    expect(created.status).toBe(201);
    expect(created.body.data.room.config).not.toHaveProperty('videoCodec');
    expect(created.body.data).toHaveProperty('fishjam_address');
    const added = await ask('POST', '/room/r1/peer', { type: 'webrtc', options: { subscribeMode: 'auto' } });
    expect(added.body.data.peer).toMatchObject(SUBSCRIPTION);
    expect((await ask('GET', '/room/r1')).body.data.peers).toEqual([expect.objectContaining(SUBSCRIPTION)]);
    expect((await ask('GET', '/room')).body.data[0].peers).toEqual([expect.objectContaining(SUBSCRIPTION)]);
  });

  test('reaches every route with a second slash before it', async () => {
    expect((await ask('POST', '//room', options)).status).toBe(201);
    expect((await ask('GET', '//room/r1')).body.data.id).toBe('r1');
    expect(
      (await askWith({ ...headers, authorization: 'Bearer wrong' }, { method: 'GET', path: '//room' })).status,
    ).toBe(401);
  });

  test.each(['///room', '//', '//other.example/room', '/'.repeat(8_000)])(
    'reaches no route with the path %.30s',
    async (path) => {
      expect((await ask('GET', path)).status).toBe(404);
    },
  );

  test('is refused a viewer of a livestream', async () => {
    await ask('POST', '/room', options);
    expect(await ask('POST', '/room/r1/viewer')).toEqual({
      status: 400,
      body: { errors: 'This server has no livestreams' },
    });
  });

  test('includes the codec of a room that has one', async () => {
    const { body } = await ask('POST', '/room', { ...options, videoCodec: 'vp8' });
    expect(body.data.room.config.videoCodec).toBe('vp8');
  });

  test.each([
    ['/room', { roomType: 'livestream' }, 'only roomType conference, got: livestream'],
    ['/room', { public: true }, 'only public false, got: true'],
    ['/room', { batchWebhookNotifications: true }, 'only batchWebhookNotifications false, got: true'],
    ['/room/r1/peer', { type: 'webrtc', options: { subscribeMode: 'manual' } }, 'only subscribeMode auto, got: manual'],
  ])('refuses %s %j with a sentence', async (path, body, sentence) => {
    const answer = await ask('POST', path, body);
    expect(answer).toEqual({ status: 400, body: { errors: `This server supports ${sentence}` } });
  });

  test('checks the token of a Fishjam client at /validate', async () => {
    expect((await ask('GET', '/validate')).status).toBe(200);
    expect(
      (await askWith({ ...headers, authorization: 'Bearer wrong' }, { method: 'GET', path: '/validate' })).status,
    ).toBe(401);
  });
});

test('shows other clients no change', async () => {
  const { body } = await api.call('POST', '/room', { body: { roomId: 'r1', roomType: 'livestream' } });
  expect(body.data.room.config.videoCodec).toBeNull();
  const added = await api.call('POST', '/room/r1/peer', {
    body: { type: 'webrtc', options: { subscribeMode: 'manual' } },
  });
  expect(Object.keys(added.body.data.peer)).toEqual(['id', 'type', 'status', 'tracks', 'metadata']);
  for (const path of ['/validate', '//room'])
    expect((await askWith({ authorization }, { method: 'GET', path })).status).toBe(404);
  expect((await askWith({ authorization }, { method: 'POST', path: '/room/r1/viewer' })).status).toBe(201);
});
