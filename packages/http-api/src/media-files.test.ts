import { connect } from 'node:net';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { fuzzRuns } from '@bloom/time/testing';
import { BytesFile, type LiveStreams, LocalRecordings, MediaFileError, type StreamRequest } from '@bloom/files';
import fc from 'fast-check';
import { parseRange } from './file-answer.js';
import { TestApi, TOKEN } from './testing/api.js';

let base: string;
let directory: string;
let api: TestApi;
const live = new Set<string>();

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-recordings-'));
  directory = join(base, 'recordings');
  live.clear();
  await mkdir(join(directory, 'room-1', 'sub'), { recursive: true });
  await mkdir(join(directory, 'odd name_'));
  await writeFile(join(directory, 'room-1', 'index.m3u8'), '#EXTM3U\n');
  await writeFile(join(directory, 'room-1', 'segment.m4s'), '0123456789');
  await writeFile(join(directory, 'room-1', 'empty.m4s'), '');
  await writeFile(join(directory, 'room-1', 'sub', 'part.m4s'), 'part');
  await writeFile(join(directory, 'stray-file'), 'x');
  await writeFile(join(base, 'secret'), 'secret');
  await symlink(join(base, 'secret'), join(directory, 'room-1', 'link.m4s'));
  await symlink(base, join(directory, 'linked'));
  api = await TestApi.open({ recordings: new LocalRecordings({ directory, isLive: (id) => live.has(id) }) });
});

afterEach(async () => {
  await api.close();
  await rm(base, { recursive: true, force: true });
});

describe('GET /recording', () => {
  test('lists directories, whatever their names, but not live ones', async () => {
    expect((await api.call('GET', '/recording')).body.data.toSorted()).toEqual(['odd name_', 'room-1']);

    live.add('room-1');
    expect((await api.call('GET', '/recording')).body).toEqual({ data: ['odd name_'] });
    expect((await api.call('GET', '/recording?scope=cluster')).body).toEqual({ data: ['odd name_'], unreachable: [] });
  });

  test('lists no recordings for a missing directory, and answers 404 for an unreadable one', async () => {
    await rm(directory, { recursive: true });
    expect((await api.call('GET', '/recording')).body).toEqual({ data: [] });

    await writeFile(directory, 'a file');
    const answer = await api.call('GET', '/recording');
    expect(answer.status).toBe(404);
    expect(answer.body).toEqual({ errors: 'Unable to obtain recordings' });
  });
});

describe('DELETE /recording/:id', () => {
  test('removes the whole directory once', async () => {
    expect((await api.call('DELETE', '/recording/room-1')).status).toBe(204);
    const again = await api.call('DELETE', '/recording/room-1');
    expect(again.status).toBe(404);
    expect(again.body).toEqual({ errors: 'Recording room-1 not found' });
    expect((await api.call('DELETE', '/recording/odd%20name_')).status).toBe(204);
  });

  test('does not find a live recording', async () => {
    live.add('room-1');
    expect((await api.call('DELETE', '/recording/room-1')).status).toBe(404);
  });

  test.each(['.', '..', '%2e', '..%2Fx', '..%2F..%2Fetc', 'room-1%2F..', '%2F', '.%2F.%2F', 'a%00', '..%2F'])(
    'does not accept %s as an id',
    async (id) => {
      const answer = await api.raw('DELETE', `/recording/${id}`);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body)).toEqual({ errors: `Invalid recording id, got: ${decodeURIComponent(id)}` });
    },
  );

  test.each(['room-1%2Fsub', 'stray-file', 'linked', 'none', '..%2Frecordings%2Froom-1'])(
    'does not treat %s as a recording, and removes nothing',
    async (id) => {
      expect([400, 404]).toContain((await api.raw('DELETE', `/recording/${id}`)).status);
      expect((await api.raw('GET', '/recording/room-1/sub%2Fpart.m4s')).body).toBe('part');
      expect((await api.raw('GET', '/recording/room-1/index.m3u8')).status).toBe(200);
    },
  );
});

describe('GET /recording/:id/:file', () => {
  test('sends files with their content type', async () => {
    const playlist = await api.raw('GET', '/recording/room-1/index.m3u8');
    expect(playlist.status).toBe(200);
    expect(playlist.body).toBe('#EXTM3U\n');
    expect(playlist.headers['content-type']).toBe('application/vnd.apple.mpegurl');

    const segment = await api.raw('GET', '/recording/room-1/segment.m4s/');
    expect(segment.status).toBe(200);
    expect(segment.body).toBe('0123456789');
    expect(segment.headers['content-type']).toBe('video/mp4');
    expect(segment.headers['content-length']).toBe('10');
    expect((await api.raw('GET', '/recording/room-1/empty.m4s')).body).toBe('');
    expect((await api.raw('HEAD', '/recording/room-1/segment.m4s')).headers['content-length']).toBe('10');
  });

  test('answers as documented', async () => {
    expect((await api.call('GET', '/recording/room-1/segment.m4s')).status).toBe(200);
    expect((await api.call('GET', '/recording/room-1/none')).status).toBe(404);
    expect((await api.call('GET', '/recording/none/x')).body).toEqual({ errors: 'Recording none not found' });
  });

  test.each<[string, number, string]>([
    ['..%2Fx/y', 400, 'Invalid recording id, got: ../x'],
    ['./y', 400, 'Invalid recording id, got: .'],
    ['..%2Fx/..%2Fy', 400, 'Invalid recording id, got: ../x'],
    ['room-1/..%2Fx', 400, 'Invalid filename, got: ../x'],
    ['room-1/..%2F..%2Fsecret', 400, 'Invalid filename, got: ../../secret'],
    ['room-1/..', 400, 'Invalid filename, got: ..'],
    ['room-1/a%00', 400, 'Invalid filename, got: a\0'],
    ['none/..%2Fx', 400, 'Invalid filename, got: ../x'],
    ['room-1/none', 404, 'File not found: none'],
    ['room-1/sub', 404, 'File not found: sub'],
    ['room-1/.', 404, 'File not found: .'],
    ['room-1/link.m4s', 404, 'File not found: link.m4s'],
    ['linked/secret', 404, 'Recording linked not found'],
    ['stray-file/x', 404, 'Recording stray-file not found'],
  ])('answers %s with %d', async (path, status, errors) => {
    const answer = await api.raw('GET', `/recording/${path}`);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({ errors });
  });

  test('does not find a live recording', async () => {
    live.add('room-1');
    expect((await api.raw('GET', '/recording/room-1/index.m3u8')).status).toBe(404);
  });
});

describe('ranges', () => {
  const get = async (range: string, extra: Record<string, string> = {}) => {
    const answer = await api.raw('GET', '/recording/room-1/segment.m4s', { headers: { range, ...extra } });
    return [answer.status, answer.body, answer.headers['content-range']];
  };

  test.each([
    ['bytes=0-3', '0123', 'bytes 0-3/10'],
    ['bytes=4-', '456789', 'bytes 4-9/10'],
    ['bytes=-2', '89', 'bytes 8-9/10'],
    ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ['bytes=8-99', '89', 'bytes 8-9/10'],
  ])('answers %s with 206', async (range, body, contentRange) => {
    expect(await get(range)).toEqual([206, body, contentRange]);
  });

  test.each(['bytes=10-', 'bytes=99-100', 'bytes=-0'])('%s is answered with 416', async (range) => {
    expect(await get(range)).toEqual([416, '', 'bytes */10']);
  });

  test.each(['bytes=0-1,3-4', 'bytes=', 'bytes=-', 'bytes=3-1', 'lines=0-1', 'bytes=a-b', 'bytes=1-2x'])(
    'answers %s with the whole file',
    async (range) => {
      expect(await get(range)).toEqual([200, '0123456789', undefined]);
    },
  );

  test('answers a range that depends on a validator with the whole file', async () => {
    expect(await get('bytes=0-1', { 'if-range': '"x"' })).toEqual([200, '0123456789', undefined]);
  });

  test('serves only ranges that lie within the file', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^bytes=\d{0,4}-\d{0,4}$/)), fc.nat(5000), (header, size) => {
        const range = parseRange(header, size);
        if (range === undefined || range === 'unsatisfiable') return;
        expect(0 <= range.start && range.start <= range.end && range.end < size).toBe(true);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

describe('GET /hls/:room_id/:file', () => {
  test('answers 404 for every file without a stream, and 400 for a name that leaves the directory', async () => {
    const missing = await api.call('GET', '/hls/r1/index.m3u8');
    expect(missing.status).toBe(404);
    expect(missing.body).toEqual({ errors: 'File not found: index.m3u8' });
    const leaving = await api.raw('GET', '/hls/r1/..%2Fx');
    expect(leaving.status).toBe(400);
    expect(JSON.parse(leaving.body)).toEqual({ errors: 'Invalid filename, got: ../x' });
  });

  describe('with a stream', () => {
    let seen: Omit<StreamRequest, 'signal'>[];
    let outcome: Error | undefined;

    beforeEach(async () => {
      seen = [];
      outcome = undefined;
      const streams: LiveStreams = {
        open: async ({ roomId, fileName, blocking }) => {
          seen.push({ roomId, fileName, blocking });
          if (outcome !== undefined) throw outcome;
          return new BytesFile(fileName, Buffer.from(fileName));
        },
      };
      await api.close();
      api = await TestApi.open({ streams });
    });

    test.each<[string, string, StreamRequest['blocking']]>([
      ['index.m3u8', 'index.m3u8', undefined],
      ['a.m3u8?_HLS_skip=YES', 'a_delta.m3u8', undefined],
      ['a.m3u8?_HLS_skip', 'a_delta.m3u8', undefined],
      ['a.m4s?_HLS_skip=YES', 'a.m4s', undefined],
      ['a.m3u8?_HLS_msn=3&_HLS_part=1', 'a.m3u8', { segment: 3, part: 1 }],
      ['a.m3u8?_HLS_msn=3', 'a.m3u8', { segment: 3, part: undefined }],
      ['a.m3u8?_HLS_msn=3&_HLS_part=0&_HLS_skip=v2', 'a_delta.m3u8', { segment: 3, part: 0 }],
      ['sub%2Fx.m4s', 'sub/x.m4s', undefined],
    ])('maps %s to a request for %s from the stream', async (path, fileName, blocking) => {
      const answer = await api.raw('GET', `/hls/r1/${path}`);
      expect(answer.status).toBe(200);
      expect(answer.body).toBe(fileName);
      expect(answer.headers['cache-control']).toBe(fileName.endsWith('.m3u8') ? 'no-store' : undefined);
      expect(seen).toEqual([{ roomId: 'r1', fileName, blocking }]);
    });

    test.each([
      '_HLS_part=3',
      '_HLS_part=x',
      '_HLS_msn=x&_HLS_part=0',
      '_HLS_msn=0&_HLS_part=x',
      '_HLS_msn=-1&_HLS_part=0',
      '_HLS_msn=1.5&_HLS_part=0',
      '_HLS_msn=&_HLS_part=',
      '_HLS_msn=9999999999999999999&_HLS_part=0',
    ])('refuses %s with 400', async (query) => {
      expect((await api.raw('GET', `/hls/r1/index.m3u8?${query}`)).status).toBe(400);
      expect(seen).toEqual([]);
    });

    test('applies the general rules to streams: token, request id, CORS, HEAD, trailing slash, odd paths', async () => {
      const id = 'a-request-id-of-more-than-20';
      const answer = await api.raw('GET', '/hls/r1/a.m3u8/', { headers: { 'x-request-id': id } });
      expect(answer).toMatchObject({
        status: 200,
        body: 'a.m3u8',
        headers: { 'x-request-id': id, 'access-control-allow-origin': '*' },
      });
      const head = await api.raw('HEAD', '/hls/r1/a.m3u8');
      expect(head.status).toBe(200);
      expect(head.body).toBe('');
      expect(head.headers['content-length']).toBe('6');
      for (const headers of [{ authorization: 'Bearer x' }, { authorization: ['Bearer x', 'Bearer x'] }]) {
        expect((await api.raw('GET', '/hls/r1/a.m3u8', { headers })).status).toBe(401);
      }
      seen.length = 0;
      expect((await api.raw('GET', '/hls/r%201/a%2F..%2Fb')).status).toBe(200);
      expect(seen).toEqual([{ roomId: 'r 1', fileName: 'a/../b', blocking: undefined }]);
      expect(JSON.parse((await api.raw('GET', '/hls/r1/%zz')).body)).toEqual({ errors: 'Bad Request' });
      for (const path of ['/hls/r1', '/hls/r1/', '/hls/r1/a/b', '/HLS/r1/a', '/hls//a']) {
        expect((await api.raw('GET', path)).status).toBe(404);
      }
      expect((await api.raw('POST', '/hls/r1/a.m3u8')).status).toBe(404);
    });

    test("turns the stream's refusals into responses", async () => {
      const cases = [
        ['NOT_FOUND', 404],
        ['INVALID_NAME', 400],
        ['WAITED_TOO_LONG', 503],
        ['OWNER_UNREACHABLE', 503],
      ] as const;
      for (const [code, status] of cases) {
        outcome = new MediaFileError(code, 'the reason');
        const answer = await api.call('GET', '/hls/r1/index.m3u8');
        expect(answer.status).toBe(status);
        expect(answer.body).toEqual({ errors: 'the reason' });
      }
    });
  });

  test('stops the wait for a file when its client disconnects', async () => {
    let aborted: () => void = () => undefined;
    const waitEnded = new Promise<void>((resolve) => {
      aborted = resolve;
    });
    let asked: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    await api.close();
    api = await TestApi.open({
      streams: {
        open: ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              aborted();
              reject(new MediaFileError('WAITED_TOO_LONG', 'nobody waits any more'));
            });
            asked();
          }),
      },
    });

    const request = api.raw('GET', '/hls/r1/index.m3u8?_HLS_msn=9&_HLS_part=0');
    request.catch(() => undefined);
    await arrived;
    const closed = api.close();
    await expect(request).rejects.toThrow();
    await waitEnded;
    await closed;
    api = await TestApi.open();
  });

  test('logs no error when a client disconnects before the first byte', async () => {
    const log = createLogger({ sink: () => undefined, level: 'debug' });
    const body = new PassThrough();
    let begun = false;
    const stream = (): PassThrough => {
      begun = true;
      return body;
    };
    await api.close();
    api = await TestApi.open({
      log,
      streams: {
        open: async () => ({ name: 'a.m4s', size: 9, read: unused, stream, close: unused }),
      },
    });
    const socket = connect(api.port, '127.0.0.1');
    socket.write(`GET /hls/r1/a.m4s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    while (!begun) await new Promise(setImmediate);
    socket.destroy();
    const last = () => log.recent.last().map(({ level, event }) => `${level} ${event}`);
    while (last().length < 2) await new Promise(setImmediate);
    expect(last()).toEqual(['debug http.request', 'debug http.answer_broken']);
    expect(body.destroyed).toBe(true);
  });
});

const unused = (): never => {
  throw new Error('not to be called');
};
