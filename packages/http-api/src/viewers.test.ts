import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BytesFile, type LiveStreams, LocalRecordings } from '@bloom/files';
import { createLogger } from '@bloom/log';
import { Passes, ROOM_FILE, roomFile } from '@bloom/rooms';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestApi, TOKEN } from './testing/api.js';

const streams: LiveStreams = { open: async ({ fileName }) => new BytesFile(fileName, Buffer.from(fileName)) };

let directory: string;
let lines: string[];
let opened: string[];
let api: TestApi;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bloom-viewers-'));
  lines = [];
  opened = [];
  const recordings = new LocalRecordings({ directory, isLive: () => false });
  api = await TestApi.open({
    streams,
    recordings: {
      list: () => recordings.list(),
      remove: (id) => recordings.remove(id),
      open: (id, name) => {
        opened.push(`${id}/${name}`);
        return recordings.open(id, name);
      },
    },
    log: createLogger({ level: 'debug', sink: (line) => lines.push(line) }),
  });
});

afterEach(async () => {
  await api.close();
  await rm(directory, { recursive: true, force: true });
});

async function createRoom(roomId: string): Promise<void> {
  await api.call('POST', '/room', { body: { roomId } });
}

async function viewerOf(roomId: string, body: unknown = {}): Promise<string> {
  return (await api.call('POST', `/room/${roomId}/viewer`, { body })).body.data.token;
}

async function record(id: string, createdAt: number, roomId = id.split('-')[0] ?? ''): Promise<void> {
  await mkdir(join(directory, id));
  await writeFile(join(directory, id, 'index.m3u8'), '#EXTM3U\n');
  await writeFile(join(directory, id, ROOM_FILE), roomFile({ roomId, createdAt }));
}

const plain = (path: string) => api.raw('GET', path, { headers: { authorization: [] } });
const bearer = (path: string, token: string) => api.raw('GET', path, { headers: { authorization: `Bearer ${token}` } });

describe('POST /room/:id/viewer', () => {
  test('returns a token, the address of the stream and the expiry', async () => {
    await createRoom('kitchen');
    const answer = await api.call('POST', '/room/kitchen/viewer', { body: { ttl: 60 } });
    expect(answer.status).toBe(201);
    const { token, hls_url, expires_at } = answer.body.data;
    expect(hls_url).toBe(`http://${api.rooms.address}/hls/kitchen/~${token}/index.m3u8`);
    expect(expires_at).toBe(Math.floor(api.clock.wall()) + 60_000);
  });

  test('needs no body, and then issues the token for a day', async () => {
    await createRoom('kitchen');
    const { expires_at } = (await api.call('POST', '/room/kitchen/viewer')).body.data;
    expect(expires_at).toBe(Math.floor(api.clock.wall()) + 86_400_000);
  });

  test('answers 404 for a room that does not exist', async () => {
    expect((await api.call('POST', '/room/kitchen/viewer')).body).toEqual({ errors: 'Room kitchen does not exist' });
  });

  test.each([0, -1, 1.5, '60', 2_592_001, {}])('refuses a ttl of %j', async (ttl) => {
    await createRoom('kitchen');
    const answer = await api.call('POST', '/room/kitchen/viewer', { body: { ttl } });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toContain('Expected ttl to be a number of seconds from 1 to 2592000, got: ');
  });
});

describe("a viewer's token", () => {
  beforeEach(() => createRoom('kitchen'));

  test('opens the stream with the token in the header and in the path', async () => {
    const token = await viewerOf('kitchen');
    expect((await bearer('/hls/kitchen/index.m3u8', token)).body).toBe('index.m3u8');
    expect((await plain(`/hls/kitchen/~${token}/index.m3u8`)).body).toBe('index.m3u8');
    expect((await plain(`/hls/kitchen/%7E${token}/main.m3u8?_HLS_skip=YES`)).body).toBe('main_delta.m3u8');
    const head = await api.raw('HEAD', `/hls/kitchen/~${token}/index.m3u8`, { headers: { authorization: [] } });
    expect(head.status).toBe(200);
  });

  test('keeps its answers out of shared caches and away from other sites', async () => {
    const token = await viewerOf('kitchen');
    const playlist = await plain(`/hls/kitchen/~${token}/index.m3u8`);
    expect(playlist.headers['cache-control']).toBe('private, no-store');
    expect(playlist.headers['referrer-policy']).toBe('no-referrer');
    const segment = await bearer('/hls/kitchen/segment.m4s', token);
    expect(segment.headers['cache-control']).toBe('private');
    const refused = await plain('/hls/kitchen/~wrong/index.m3u8');
    expect(refused.headers['cache-control']).toBe('private');
  });

  test("opens nothing but files with a viewer's token", async () => {
    const token = await viewerOf('kitchen');
    for (const [method, path] of [
      ['GET', '/room'],
      ['GET', '/room/kitchen'],
      ['POST', '/room/kitchen/peer'],
      ['POST', '/room/kitchen/viewer'],
      ['GET', '/recording'],
      ['DELETE', '/recording/kitchen'],
      ['POST', '/whep'],
    ] as const) {
      const headers = { authorization: `Bearer ${token}` };
      expect((await api.raw(method, path, { headers })).status).toBe(401);
    }
    await record('kitchen', 1);
    expect((await api.raw('DELETE', `/recording/kitchen/~${token}/x`, { headers: {} })).status).toBe(404);
    expect((await api.call('GET', '/recording')).body.data).toEqual(['kitchen']);
  });

  test("refuses a viewer's token after its expiry", async () => {
    const token = await viewerOf('kitchen', { ttl: 60 });
    api.clock.advance(59_999);
    expect((await plain(`/hls/kitchen/~${token}/index.m3u8`)).status).toBe(200);
    api.clock.advance(1);
    expect((await plain(`/hls/kitchen/~${token}/index.m3u8`)).status).toBe(401);
  });

  test("accepts a viewer's token for one room, and not for a later one with the same id", async () => {
    const token = await viewerOf('kitchen');
    await createRoom('attic');
    expect((await plain(`/hls/attic/~${token}/index.m3u8`)).status).toBe(401);
    await api.call('DELETE', '/room/kitchen');
    expect((await plain(`/hls/kitchen/~${token}/index.m3u8`)).status).toBe(404);
    await createRoom('kitchen');
    expect((await plain(`/hls/kitchen/~${token}/index.m3u8`)).status).toBe(401);
    expect((await bearer('/hls/kitchen/index.m3u8', token)).status).toBe(401);
  });

  test("opens every recording of the token's room, and none of another", async () => {
    const token = await viewerOf('kitchen');
    await api.call('DELETE', '/room/kitchen');
    await record('kitchen', 1);
    await record('kitchen-20261128T200000Z', 1);
    await record('kitchen-20261128T190000Z', 0);
    await record('kitchen-2', 1, 'kitchen-2');
    await record('attic', 1);
    const statusOf = async (id: string) => (await plain(`/recording/${id}/~${token}/index.m3u8`)).status;
    expect(await statusOf('kitchen')).toBe(200);
    expect((await bearer('/recording/kitchen/index.m3u8', token)).status).toBe(200);
    expect(await statusOf('kitchen-20261128T200000Z')).toBe(200);
    expect(await statusOf('kitchen-20261128T190000Z')).toBe(401);
    expect(await statusOf('kitchen-2')).toBe(401);
    expect(await statusOf('attic')).toBe(401);
    expect(await statusOf('kitchen-none')).toBe(404);
    await rm(join(directory, 'kitchen', ROOM_FILE));
    expect(await statusOf('kitchen')).toBe(401);
  });
});

describe("a peer's token", () => {
  let peer: { id: string };
  let token: string;
  beforeEach(async () => {
    await createRoom('kitchen');
    ({ peer, token } = (await api.call('POST', '/room/kitchen/peer', { body: { type: 'webrtc' } })).body.data);
  });

  const watch = async () => (await bearer('/hls/kitchen/index.m3u8', token)).status;

  test("opens the stream of a peer's room while the peer exists", async () => {
    expect(await watch()).toBe(200);
    expect((await plain(`/hls/kitchen/~${encodeURIComponent(token)}/index.m3u8`)).status).toBe(401);
    await createRoom('attic');
    expect((await bearer('/hls/attic/index.m3u8', token)).status).toBe(401);
    await api.call('DELETE', `/room/kitchen/peer/${peer.id}`);
    api.clock.advance(1_000);
    expect(await watch()).toBe(401);
  });

  test('opens no stream while the peer may not subscribe, no recording, and none after the room', async () => {
    const path = `/room/kitchen/peer/${peer.id}`;
    await api.call('PATCH', path, { body: { permissions: { subscribe: false } } });
    expect(await watch()).toBe(401);
    await api.call('PATCH', path, { body: { permissions: { subscribe: true } } });
    api.clock.advance(1_000);
    expect(await watch()).toBe(200);
    await record('kitchen', 1);
    expect((await bearer('/recording/kitchen/index.m3u8', token)).status).toBe(401);
    await api.call('DELETE', '/room/kitchen');
    api.clock.advance(1_000);
    expect(await watch()).toBe(401);
  });
});

describe('an attacker', () => {
  beforeEach(() => createRoom('kitchen'));

  test("looks up few made-up recordings for a viewer's token, and still opens real ones", async () => {
    const token = await viewerOf('kitchen');
    const other = await viewerOf('kitchen', { ttl: 60 });
    await record('kitchen', 1);
    await record('kitchen-20261128T200000Z', 1);
    const ask = async (id: string, by = token) => (await bearer(`/recording/${id}/index.m3u8`, by)).status;
    expect(await ask('kitchen')).toBe(200);
    const statuses: number[] = [];
    for (let at = 0; at < 200; at++) statuses.push(await ask(`kitchen-${at}`));
    expect(statuses.filter((status) => status === 404)).toHaveLength(59);
    expect(statuses.filter((status) => status === 429)).toHaveLength(141);
    const lookedUp = new Set(opened.filter((path) => /^kitchen-\d+\//.test(path)));
    expect(lookedUp.size).toBe(2 * 59);
    expect(await ask('kitchen')).toBe(200);
    expect(await ask('kitchen-20261128T200000Z', other)).toBe(200);
    api.clock.advance(1_000);
    expect(await ask('kitchen-20261128T200000Z')).toBe(200);
  });

  test("asks the members for an ended room at a limited rate for a viewer's token", async () => {
    const token = await viewerOf('kitchen');
    const ask = async () => (await bearer('/hls/kitchen/index.m3u8', token)).status;
    expect(await ask()).toBe(200);
    await api.call('DELETE', '/room/kitchen');
    const statuses: number[] = [];
    for (let at = 0; at < 100; at++) statuses.push(await ask());
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(35);
  });

  test('answers 401 for every forged token, before anything is looked up', async () => {
    const token = await viewerOf('kitchen');
    const [payload = '', signature = ''] = token.split('.');
    const claim = JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown[];
    const forged = Buffer.from(JSON.stringify(['attic', ...claim.slice(1)])).toString('base64url');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    const tokens = [
      `${forged}.${signature}`,
      `${none}.${payload}.`,
      `${payload}.`,
      payload,
      `.${signature}`,
      `${token}${token}`,
      `${token}.${signature}`,
      `${token}=`,
      token.replaceAll('.', '%2E'),
      `~${token}`,
      new Passes('another secret!!', api.clock).issueViewer({ roomId: 'kitchen', createdAt: 1 }).token,
      TOKEN,
      'x'.repeat(8_000),
      '',
    ];
    await record('kitchen', 1);
    for (const each of tokens) {
      expect((await plain(`/hls/kitchen/~${each}/index.m3u8`)).status).toBe(401);
      expect((await plain(`/recording/kitchen/~${each}/index.m3u8`)).status).toBe(401);
    }
    expect(opened).toEqual([]);
  });

  test('grants nothing for a second token, a long token or a path with `..`', async () => {
    const token = await viewerOf('kitchen');
    expect((await plain(`/hls/kitchen/~${token}/~${token}/index.m3u8`)).status).toBe(404);
    expect((await plain(`/hls/kitchen/~${'x'.repeat(16_384)}/index.m3u8`)).status).toBe(431);
    expect((await plain(`/hls/kitchen/~${token}/..%2F..%2Fetc%2Fpasswd`)).status).toBe(400);
    expect((await plain(`/hls/kitchen/~${token}/../attic/index.m3u8`)).status).toBe(404);
    expect((await plain(`/hls/..%2Fkitchen/~${token}/index.m3u8`)).status).toBe(401);
    expect((await plain(`/recording/kitchen%2F..%2Fattic/~${token}/index.m3u8`)).status).toBe(401);
    expect((await plain(`/recording/kitchen-%2F..%2F..%2Fx/~${token}/index.m3u8`)).status).toBe(400);
    expect((await plain(`/hls/kitchen/~${token}`)).status).toBe(401);
  });

  test('writes no token to the log, wherever it was in the path', async () => {
    const token = await viewerOf('kitchen');
    for (const path of [
      `/hls/kitchen/~${token}/index.m3u8`,
      `/hls/kitchen/~${token}/~${token}/index.m3u8`,
      `/hls/~${token}/index.m3u8`,
      `/hls/kitchen/~${token}`,
      `/HLS/kitchen/%7e${token}/x`,
      `/room/~${token}`,
      `/recording/kitchen/~${token}/index.m3u8`,
    ]) {
      await plain(path);
    }
    await bearer('/hls/kitchen/index.m3u8', token);
    expect(lines.filter((line) => line.includes('http.request')).length).toBeGreaterThan(7);
    expect(lines.join()).not.toContain(token.slice(0, 20));
  });
});
