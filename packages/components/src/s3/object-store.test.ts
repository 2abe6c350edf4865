import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import S3rver from 's3rver';
import { sleep, systemClock } from '@bloom/time';
import { until } from '@bloom/time/testing';
import { Uploads } from '../recording/uploads.js';
import { openStore, type ObjectStore, type S3Target } from './object-store.js';
import { Uploader } from './upload-files.js';

// Real sockets, on a machine that is busy with other tests.
jest.setTimeout(30_000);

let server: S3rver;
let storage: string;
let local: string;
let target: S3Target;
let store: ObjectStore;

beforeAll(async () => {
  storage = await mkdtemp(join(tmpdir(), 'bloom-s3-'));
  server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: storage,
    configureBuckets: [{ name: 'calls', configs: [] }],
  });
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  target = { endpoint, region: 'eu-central-1', bucket: 'calls', accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
});
afterAll(async () => {
  await server.close();
  await rm(storage, { recursive: true, force: true });
});
beforeEach(async () => {
  local = await mkdtemp(join(tmpdir(), 'bloom-upload-'));
  store = await openStore(target);
});
afterEach(async () => {
  store.close();
  await rm(local, { recursive: true, force: true });
});

const stored = (key: string): Promise<Buffer> => readFile(join(storage, 'calls', `${key}._S3rver_object`));

describe('a bucket', () => {
  test('receives small files whole and large ones in parts', async () => {
    const large = Buffer.alloc(12 * 1024 * 1024, 'frame');
    await writeFile(join(local, 'small.ogg'), 'sound');
    await writeFile(join(local, 'large.mp4'), large);
    await store.put('a/small.ogg', join(local, 'small.ogg'));
    await store.put('a/large.mp4', join(local, 'large.mp4'));
    expect((await stored('a/small.ogg')).toString()).toBe('sound');
    expect((await stored('a/large.mp4')).equals(large)).toBe(true);
  });

  test('replaces an object, reports its size, and removes it', async () => {
    await writeFile(join(local, 'a.ogg'), 'so');
    await store.put('b/a.ogg', join(local, 'a.ogg'));
    expect(await store.sizeOf('b/a.ogg')).toBe(2);
    await writeFile(join(local, 'a.ogg'), 'sound');
    await store.put('b/a.ogg', join(local, 'a.ogg'));
    expect((await stored('b/a.ogg')).toString()).toBe('sound');
    await store.remove('b/a.ogg');
    expect(await store.sizeOf('b/a.ogg')).toBeUndefined();
    await expect(stored('b/a.ogg')).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('gives an object back, and nothing of one that is missing, too large or no longer wanted', async () => {
    const large = Buffer.alloc(3 * 1024 * 1024, 'frame');
    await writeFile(join(local, 'large.mp4'), large);
    await store.put('i/large.mp4', join(local, 'large.mp4'));
    const path = join(local, 'back.mp4');
    expect(await store.get('i/large.mp4', path, { maxBytes: large.length })).toBe(large.length);
    expect((await readFile(path)).equals(large)).toBe(true);

    const refused = async (
      key: string,
      limits: Parameters<ObjectStore['get']>[2],
      to = 'other.mp4',
    ): Promise<string> => {
      const error = await store.get(key, join(local, to), limits).catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code: 'DOWNLOAD_FAILED' });
      return String(error);
    };
    expect(await refused('i/none.mp4', { maxBytes: 10 })).toContain('NoSuchKey');
    expect(await refused('i/large.mp4', { maxBytes: large.length - 1 })).toContain('more than 3145727 bytes');
    expect(await refused('i/large.mp4', { maxBytes: large.length, signal: AbortSignal.abort() })).toContain('Abort');
    expect(await readdir(local)).toEqual(['back.mp4', 'large.mp4']);
    // An existing file is left alone.
    expect(await refused('i/large.mp4', { maxBytes: large.length }, 'back.mp4')).toContain('EEXIST');
    expect((await readFile(path)).equals(large)).toBe(true);
  });

  test('receives nothing for a file that does not exist', async () => {
    await expect(store.put('d/a.ogg', join(local, 'a.ogg'))).rejects.toMatchObject({ code: 'UPLOAD_FAILED' });
    expect(await store.sizeOf('d/a.ogg')).toBeUndefined();
  });

  test('gives up on a bucket that does not answer in time', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    await writeFile(join(local, 'a.ogg'), 'sound');
    const { port } = silent.address() as AddressInfo;
    const other = await openStore({ ...target, endpoint: `http://127.0.0.1:${port}` }, { putTimeoutMs: 200 });
    await expect(other.put('e/a.ogg', join(local, 'a.ogg'))).rejects.toMatchObject({
      code: 'UPLOAD_FAILED',
      message: expect.stringContaining('Abort'),
    });
    other.close();
    silent.closeAllConnections();
    silent.close();
  });

  /** Starts a store that answers only the start and the end of an upload in parts; returns what it is asked. */
  async function holding(): Promise<{ url: string; asked: string[]; end(): void }> {
    const asked: string[] = [];
    const holder = createServer((request, response) => {
      const { method = '', url = '' } = request;
      asked.push(`${method} ${url.includes('partNumber') ? 'part' : url.includes('upload') ? 'parts' : 'object'}`);
      request.resume().on('end', () => {
        if (method === 'DELETE') response.writeHead(204).end();
        if (method !== 'POST') return;
        const id = '<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>';
        response.writeHead(200, { 'content-type': 'application/xml' }).end(id);
      });
    }).listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    const end = (): void => {
      holder.closeAllConnections();
      holder.close();
    };

    return { url: `http://127.0.0.1:${port}`, asked, end };
  }

  test.each([
    ['a file', 1_000, ['PUT object']],
    ['a file in parts', 6 * 1024 * 1024, ['POST parts', 'PUT part', 'PUT part', 'DELETE parts']],
  ])('ends the upload of %s that is aborted, without repeating it', async (_what, bytes, all) => {
    const { url, asked, end } = await holding();
    await writeFile(join(local, 'a.ogg'), Buffer.alloc(bytes));
    const ending = new AbortController();
    const uploader = new Uploader();
    const file = { key: 'j/a.ogg', path: join(local, 'a.ogg') };
    const uploaded = uploader.upload({ ...target, endpoint: url }, [file], { signal: ending.signal });
    const ended = expect(uploaded).rejects.toMatchObject({
      code: 'UPLOAD_FAILED',
      message: expect.stringContaining('aborted'),
    });
    const puts = all.filter((each) => each.startsWith('PUT'));
    await until(() => asked.filter((each) => each.startsWith('PUT')).length === puts.length);
    ending.abort();
    await ended;
    await until(() => asked.length === all.length);
    // The client would repeat a request within this time.
    await sleep(500, { clock: systemClock });
    expect(asked).toEqual(all);
    end();
  });

  test('is not asked for an upload that was aborted before', async () => {
    const { url, asked, end } = await holding();
    await writeFile(join(local, 'a.ogg'), 'sound');
    const other = await openStore({ ...target, endpoint: url });
    await expect(other.put('j/a.ogg', join(local, 'a.ogg'), AbortSignal.abort())).rejects.toMatchObject({
      code: 'UPLOAD_FAILED',
    });
    expect(asked).toEqual([]);
    other.close();
    end();
  });

  test('gives up on a bucket that falls silent, so that a retry is possible', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    await writeFile(join(local, 'a.ogg'), 'sound');
    const { port } = silent.address() as AddressInfo;
    const other = await openStore({ ...target, endpoint: `http://127.0.0.1:${port}` }, { idleTimeoutMs: 200 });
    expect(await other.sizeOf('e/a.ogg')).toBe('unknown');
    await expect(other.put('e/a.ogg', join(local, 'a.ogg'))).rejects.toMatchObject({
      code: 'UPLOAD_FAILED',
      message: expect.stringContaining('TimeoutError'),
    });
    other.close();
    silent.closeAllConnections();
    silent.close();
  });

  /** Starts a store that sends this much of a response to each request, and then never ends it. */
  async function endless(answer: (response: ServerResponse) => void): Promise<{ url: string; end(): void }> {
    const server = createServer((request, response) => {
      request.resume();
      response.on('error', () => undefined);
      response.writeHead(200, { 'content-type': 'application/xml' });
      answer(response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const end = (): void => {
      server.closeAllConnections();
      server.close();
    };

    return { url: `http://127.0.0.1:${port}`, end };
  }

  test('gives up after a megabyte of an endless response', async () => {
    let sent = 0;
    const flood = await endless((response) => {
      const more = (): void => {
        while (!response.destroyed) {
          sent += 65_536;
          if (!response.write(Buffer.alloc(65_536, 'x'))) return void response.once('drain', more);
        }
      };
      more();
    });
    await writeFile(join(local, 'a.ogg'), 'sound');
    const other = await openStore({ ...target, endpoint: flood.url });
    await expect(other.put('g/a.ogg', join(local, 'a.ogg'))).rejects.toMatchObject({
      code: 'UPLOAD_FAILED',
      message: expect.stringContaining('more than 1048576 bytes'),
    });
    await expect(other.remove('g/a.ogg')).rejects.toMatchObject({ code: 'UPLOAD_FAILED' });
    await expect(other.get('g/a.ogg', join(local, 'b.ogg'), { maxBytes: 1_000 })).rejects.toMatchObject({
      message: expect.stringContaining('more than 1000 bytes'),
    });
    // Plus what the operating system buffers, once per attempt.
    expect(sent).toBeLessThan(64 * 1024 * 1024);
    other.close();
    flood.end();
  });

  test('gives up on a response that trickles for too long', async () => {
    const drip = await endless((response) => {
      const timer = setInterval(() => response.write('x'), 20);
      response.once('close', () => clearInterval(timer));
    });
    await writeFile(join(local, 'a.ogg'), 'sound');
    const other = await openStore({ ...target, endpoint: drip.url }, { responseMs: 300, getMs: 200 });
    await expect(other.get('h/a.ogg', join(local, 'b.ogg'), { maxBytes: 1_000_000 })).rejects.toMatchObject({
      message: expect.stringContaining('took more than 200 ms'),
    });
    expect(await readdir(local)).toEqual(['a.ogg']);
    await expect(other.put('h/a.ogg', join(local, 'a.ogg'))).rejects.toMatchObject({
      message: expect.stringContaining('took more than 300 ms'),
    });
    other.close();
    drip.end();
  });

  test('does not report sizes if it may only be written to', async () => {
    const forbidding = createServer((_, response) => response.writeHead(403).end()).listen(0, '127.0.0.1');
    await once(forbidding, 'listening');
    const { port } = forbidding.address() as AddressInfo;
    const other = await openStore({ ...target, endpoint: `http://127.0.0.1:${port}` });
    expect(await other.sizeOf('f/a.ogg')).toBe('unknown');
    other.close();
    forbidding.closeAllConnections();
    forbidding.close();
  });

  test('reports what is wrong if it does not exist, the credentials are wrong or the store is down', async () => {
    await writeFile(join(local, 'a.ogg'), 'sound');
    const attempt = async (changes: Partial<S3Target>): Promise<string> => {
      const other = await openStore({ ...target, ...changes });
      const failure = await other.put('c/a.ogg', join(local, 'a.ogg')).catch((error: unknown) => error);
      other.close();
      expect(failure).toMatchObject({ code: 'UPLOAD_FAILED' });
      expect(String(failure)).not.toContain('S3RVER');
      return String(failure);
    };
    expect(await attempt({ bucket: 'nowhere' })).toContain('NoSuchBucket');
    expect(await attempt({ accessKeyId: 'nobody' })).toContain('InvalidAccessKeyId');
    expect(await attempt({ endpoint: 'http://127.0.0.1:1' })).toContain('ECONNREFUSED');
  });
});

test('deletes a finished recording locally only after it has arrived under its key', async () => {
  const directory = join(local, 'kitchen', 'part_1');
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'a.ogg'), 'sound');
  await writeFile(join(directory, 'report.json'), '{}');
  const uploads = new Uploads({ log: silentLog, clock: systemClock });
  const part = { directory, roomId: 'kitchen', name: 'part_1', files: ['a.ogg', 'report.json'] };
  uploads.add(part, { target, prefix: 'prefix' });
  await uploads.close({ timeoutMs: 20_000 });
  expect((await stored('prefix/kitchen/part_1/a.ogg')).toString()).toBe('sound');
  expect((await stored('prefix/kitchen/part_1/report.json')).toString()).toBe('{}');
  expect(await readdir(local)).toEqual([]);
});
