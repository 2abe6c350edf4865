import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { startTestNode, type TestNode } from './testing/test-node.js';

// Real sockets, on a machine that other tests keep busy.
jest.setTimeout(30_000);

const part = 'part_2026-01-02T03-04-05.000Z';
const track = { offset: 5e8, start_timestamp: 0, end_timestamp: 96_000, clock_rate: 48_000 };

let node: TestNode;
let directory: string;
beforeEach(async () => {
  node = await startTestNode();
  directory = join(node.settings.resourcesPath, 'raw_recordings', 'kitchen', part);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'a.ogg'), '0123456789');
  await writeFile(join(directory, 'report.json'), JSON.stringify({ tracks: { 'a.ogg': track } }));
  await writeFile(join(directory, '.hidden'), 'hidden');
  await writeFile(join(node.settings.resourcesPath, 'secret'), 'secret content');
  await symlink(join(node.settings.resourcesPath, 'secret'), join(directory, 'link.ogg'));
});
afterEach(() => node.dispose());

/** Sends a request whose path is not normalised. */
function raw(method: string, path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(node.url);
  const authorization = `Bearer ${node.settings.http.apiToken}`;
  return new Promise<{ status: number; body: string; type: string | undefined }>((resolve, reject) => {
    const options = { hostname, port, method, path, headers: { authorization, ...headers } };
    const outgoing = httpRequest(options, (answer) => {
      let body = '';
      answer.setEncoding('latin1').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ status: answer.statusCode!, body, type: answer.headers['content-type'] }));
    });
    outgoing.on('error', reject).end();
  });
}

const at = `/raw_recording/kitchen/${part}`;

describe('recordings of tracks over HTTP', () => {
  test('are listed', async () => {
    const { status, body } = await node.request('GET', '/raw_recording');
    expect(status).toBe(200);
    expect(body).toEqual({
      data: [
        {
          room: 'kitchen',
          part,
          state: 'finished',
          tracks: 1,
          seconds: 2.5,
          bytes: expect.any(Number),
          started_at: Date.UTC(2026, 0, 2, 3, 4, 5),
          uploaded_at: null,
        },
      ],
    });
    expect((await node.request('GET', '/raw_recording?scope=cluster')).body.unreachable).toEqual([]);
    expect((await node.request('GET', '/raw_recording?room=hall')).body).toEqual({ data: [] });
  });

  test('are listed page by page', async () => {
    await mkdir(join(directory, '..', '..', 'attic', part), { recursive: true });
    await writeFile(join(directory, '..', '..', 'attic', part, 'report.json'), '{}');
    const first = await node.request('GET', '/raw_recording?limit=1');
    expect(first.body).toMatchObject({ data: [{ room: 'attic' }], next: `attic/${part}` });
    const second = await node.request('GET', `/raw_recording?limit=1&after=${encodeURIComponent(first.body.next)}`);
    expect(second.body.data).toMatchObject([{ room: 'kitchen' }]);
    expect(second.body.next).toBeUndefined();
  });

  test.each([
    'limit=0',
    'limit=1001',
    'limit=-1',
    'limit=1e9',
    'limit=x',
    'limit=',
    'after=x',
    'after=..%2F..',
    'room=..',
  ])('cannot be listed with %s', async (query) => {
    const { status, body } = await node.request('GET', `/raw_recording?${query}`);
    expect(status).toBe(400);
    expect(body.errors).toMatch(/got: /);
  });

  test('are served with their types, also in ranges', async () => {
    expect(await raw('GET', `${at}/a.ogg`)).toEqual({ status: 200, body: '0123456789', type: 'audio/ogg' });
    expect((await raw('GET', `${at}/report.json`)).type).toBe('application/json');
    expect(await raw('GET', `${at}/a.ogg`, { range: 'bytes=2-4' })).toMatchObject({ status: 206, body: '234' });
    expect(await raw('GET', `${at}/a.ogg`, { range: 'bytes=-3' })).toMatchObject({ status: 206, body: '789' });
    expect((await raw('GET', `${at}/a.ogg`, { range: 'bytes=10-' })).status).toBe(416);
    for (const range of [
      'bytes=4-2',
      'bytes=a-b',
      'bytes=0-1,3-4',
      'items=0-1',
      'bytes=',
      `bytes=${'9'.repeat(99)}-`,
    ]) {
      expect(await raw('GET', `${at}/a.ogg`, { range })).toMatchObject({ status: 200, body: '0123456789' });
    }
  });

  test.each([
    [`/raw_recording/../${part}/a.ogg`, 400],
    [`/raw_recording/%2e%2e/${part}/a.ogg`, 400],
    [`/raw_recording/kitchen%2F..%2F..%2Fx/${part}/a.ogg`, 400],
    [`/raw_recording/./${part}/a.ogg`, 400],
    [`/raw_recording/kitchen%00/${part}/a.ogg`, 400],
    ['/raw_recording/kitchen/..%2F../secret', 400],
    ['/raw_recording/kitchen/part_/secret', 400],
    [`/raw_recording/kitchen/${part}%0A/a.ogg`, 400],
    [`${at}/..%2F..%2F..%2Fsecret`, 400],
    [`${at}/a.ogg%00`, 400],
    [`${at}/link.ogg`, 404],
    [`${at}/.hidden`, 404],
    [`${at}/x%2F..%2F.hidden`, 404],
    [`${at}/%2F.hidden`, 404],
    [`${at}/.`, 404],
    [`${at}/b.ogg`, 404],
    [`/raw_recording/hall/${part}/a.ogg`, 404],
    ['/raw_recording/kitchen/part_2026-01-02T03-04-05.001Z/a.ogg', 404],
  ])('do not let %s out', async (path, status) => {
    const answer = await raw('GET', path);
    expect(answer.status).toBe(status);
    expect(answer.body).not.toContain('secret content');
    expect(JSON.parse(answer.body)).toEqual({ errors: expect.any(String) });
  });

  test('are mixed as a job whose end is in the list', async () => {
    const { status, body } = await node.request('POST', `${at}/mix`, { layout: 'speaker', width: 640, height: 360 });
    if (status === 503) return expect(body.errors).toContain('node-av');
    expect(status).toBe(202);
    const mix = { layout: 'speaker', width: 640, height: 360, requested_at: expect.any(Number) };
    expect(body).toEqual({ data: { ...mix, state: 'queued', ended_at: null } });
    const listed = async () => (await node.request('GET', '/raw_recording')).body.data[0];
    await until(async () => (await listed()).mix.ended_at !== null);
    // The track is damaged.
    expect((await listed()).mix).toEqual({
      ...mix,
      state: 'failed',
      reason: expect.any(String),
      ended_at: expect.any(Number),
    });
    expect((await raw('DELETE', `${at}/mix`)).status).toBe(204);
    expect((await raw('DELETE', `${at}/mix`)).status).toBe(404);
    expect(await listed()).not.toHaveProperty('mix');
  });

  test('are mixed without a lost part if the request says so, and the list names it', async () => {
    const lost = 'part_2026-01-02T02-04-05.000Z';
    const report = { tracks: { 'a.ogg': track }, continues: { part: lost, gap: 0 } };
    await writeFile(join(directory, 'report.json'), JSON.stringify(report));
    const mixed = async (order: object) => {
      const { status, body } = await node.request('POST', `${at}/mix`, order);
      if (status === 503) return body.errors;
      const listed = async () => (await node.request('GET', '/raw_recording')).body.data[0].mix;
      await until(async () => (await listed()).ended_at !== null);
      return listed();
    };
    const refused = await mixed({});
    if (typeof refused === 'string') return expect(refused).toContain('node-av');
    expect(refused).toMatchObject({ state: 'failed', reason: expect.stringContaining(`${lost}, a part of`) });
    expect(refused.reason).toContain('(skipMissing)');
    const rest = await mixed({ skipMissing: true });
    // The track is damaged.
    expect(rest).toMatchObject({ missing: [lost], reason: expect.not.stringContaining(lost) });
  });

  test.each([
    [{ layout: 'pile' }, 'Expected layout to be grid or speaker, got: pile'],
    [{ layout: 7 }, 'got: 7'],
    [{ width: 641 }, 'Expected an even number of pixels, 64 to 3840, got: 641'],
    [{ width: 62 }, 'got: 62'],
    [{ height: 2_162 }, '64 to 2160'],
    [{ height: '720' }, 'got: 720'],
    [{ width: 1e21 }, 'got: 1e+21'],
    [{ skipMissing: 'yes' }, 'Expected skipMissing to be a boolean, got: yes'],
    [{ credentials: 'x' }, 'Invalid credentials: expected object'],
    [{ credentials: { bucket: 'b' } }, 'Required field "accessKeyId" missing'],
    [{ credentials: { accessKeyId: 7 } }, 'Invalid credentials.accessKeyId: expected string'],
  ])('are not mixed as %j', async (order, message) => {
    const { status, body } = await node.request('POST', `${at}/mix`, order);
    expect(status).toBe(400);
    expect(body.errors).toContain(message);
  });

  test('are not mixed with credentials whose endpoint is no plain address, which is not repeated', async () => {
    const keys = { accessKeyId: 'a', secretAccessKey: 'b', region: 'c', bucket: 'd' };
    for (const endpoint of [
      'file:///etc',
      'https://user:secret@store.example',
      'x',
      'https://store.example?key=secret',
    ]) {
      const credentials = { ...keys, endpoint };
      const { status, body } = await node.request('POST', `${at}/mix`, { credentials });
      expect(status).toBe(400);
      expect(body.errors).toContain('credentials.endpoint');
      expect(body.errors).not.toContain('secret');
    }
  });

  test.each([
    [`/raw_recording/..%2F..%2Fx/${part}/mix`, 400],
    [`/raw_recording/%2e%2e/${part}/mix`, 400],
    [`/raw_recording/kitchen%00/${part}/mix`, 400],
    ['/raw_recording/kitchen/.mix-x/mix', 400],
    [`/raw_recording/kitchen/${part}%2F..%2F${part}/mix`, 400],
    [`/raw_recording/hall/${part}/mix`, 404],
    ['/raw_recording/kitchen/part_2026-01-02T03-04-05.001Z/mix', 404],
  ])('are not mixed at %s', async (path, status) => {
    for (const method of ['POST', 'DELETE']) expect((await raw(method, path)).status).toBe(status);
    expect(await readdir(node.settings.resourcesPath)).not.toContain('mixed_recordings');
  });

  test('need the API token', async () => {
    for (const [method, path] of [
      ['GET', '/raw_recording'],
      ['GET', `${at}/a.ogg`],
      ['DELETE', at],
      ['POST', `${at}/mix`],
      ['DELETE', `${at}/mix`],
    ] as const) {
      expect((await raw(method, path, { authorization: 'Bearer wrong' })).status).toBe(401);
    }
    const room = await node.createRoom();
    const { token } = (await node.request('POST', `/room/${room}/viewer`)).body.data;
    expect((await raw('GET', `${at}/a.ogg`, { authorization: `Bearer ${token}` })).status).toBe(401);
  });

  test('are removed once, and only they', async () => {
    for (const path of [
      '/raw_recording/kitchen/..',
      `/raw_recording/..%2F..%2Fx/${part}`,
      '/raw_recording/kitchen/.',
    ]) {
      expect((await raw('DELETE', path)).status).toBe(400);
    }
    expect((await raw('DELETE', at)).status).toBe(204);
    expect((await raw('DELETE', at)).status).toBe(404);
    expect(await readdir(join(node.settings.resourcesPath, 'raw_recordings'))).toEqual([]);
  });
});
