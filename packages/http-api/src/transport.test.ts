import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns, until } from '@bloom/time/testing';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { createLogger } from '@bloom/log';
import { ROUTES } from './routes.js';
import { TestApi, TOKEN } from './testing/api.js';

let api: TestApi;

beforeEach(async () => {
  api = await TestApi.open();
});

afterEach(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };

/** Returns a path that the route matches. */
function pathOf(route: (typeof ROUTES)[number]): string {
  return route.path.replaceAll(/:\w+/g, 'x');
}

describe('authentication', () => {
  const routes = ROUTES.filter(({ auth }) => auth !== 'none').map(
    (route) => [route.method.toUpperCase(), pathOf(route)] as const,
  );

  test.each(routes)('demands the token for %s %s before anything else', async (method, path) => {
    const answers = await Promise.all([
      api.raw(method, path, { headers: { authorization: [] } }),
      api.raw(method, path, { headers: { authorization: '' } }),
      api.raw(method, path, { headers: { authorization: `Basic ${TOKEN}` } }),
      api.raw(method, path, { headers: { authorization: `Bearer${TOKEN}` } }),
      api.raw(method, path, { headers: { authorization: TOKEN } }),
      api.raw(method, path, { headers: { authorization: [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`] } }),
    ]);
    for (const answer of answers) {
      expect(answer.status).toBe(401);
      expect(JSON.parse(answer.body).errors).toContain('Missing token');
    }

    for (const token of ['wrong', `${TOKEN}x`, TOKEN.slice(1), '', ` ${TOKEN}`, TOKEN.toUpperCase()]) {
      const answer = await api.raw(method, path, { headers: { authorization: `Bearer ${token}` } });
      expect(answer.status).toBe(401);
    }
    const wrong = await api.raw(method, path, { headers: { authorization: 'Bearer wrong' }, body: '{' });
    expect(JSON.parse(wrong.body)).toEqual({ errors: 'Invalid token' });
  });

  test.each(['bearer', 'BEARER', 'bEaReR'])('the scheme may be written as %s', async (scheme) => {
    expect((await api.raw('GET', '/room', { headers: { authorization: `${scheme} ${TOKEN}` } })).status).toBe(200);
  });

  test('accepts a non-ASCII token in UTF-8 and, as browsers send it, in Latin-1', async () => {
    await api.close();
    const settings = { publicMediaFiles: false, describe: false, version: '1.0.0' } as const;
    api = await TestApi.open({ settings: { ...settings, apiToken: 'schlüssel' } });
    const asUtf8 = Buffer.from('schlüssel').toString('latin1');
    for (const token of [asUtf8, 'schlüssel']) {
      expect((await api.raw('GET', '/room', { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
    }
    expect((await api.raw('GET', '/room', { headers: { authorization: 'Bearer schlussel' } })).status).toBe(401);
  });

  test('answers a wrong token with 401 on an unknown room, and with 404 on an unknown route', async () => {
    const headers = { authorization: 'Bearer wrong' };
    expect((await api.raw('GET', '/room/none', { headers })).status).toBe(401);
    expect((await api.raw('GET', '/none', { headers })).status).toBe(404);
    expect((await api.raw('PUT', '/room', { headers })).status).toBe(404);
  });

  test('needs no token for the two file routes with public media files', async () => {
    await api.close();
    api = await TestApi.open({
      settings: { apiToken: TOKEN, publicMediaFiles: true, describe: false, version: '1.0.0' },
    });

    for (const route of ROUTES.filter(({ auth }) => auth !== 'none')) {
      const answer = await api.raw(route.method.toUpperCase(), pathOf(route), { headers: { authorization: [] } });
      expect([route.path, answer.status]).toEqual([route.path, route.auth === 'file' ? 404 : 401]);
    }
  });
});

describe('routing', () => {
  test.each(['/', '/none', '/rooms', '/Room', '/room/a/b', '/room/a/peer/b/c', '/hls/x', '/sip/x/call'])(
    'does not route GET %s',
    async (path) => {
      const answer = await api.raw('GET', path);
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body)).toEqual({ errors: { detail: 'Not Found' } });
      expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    },
  );

  test('tells a browser in a sentence why there is no page at the root', async () => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const answer = await api.raw('GET', '/', { headers: { accept } });
    expect(answer.status).toBe(404);
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(answer.body).toContain('JF_DASHBOARD=true');
  });

  test.each(['application/json', '*/*', '', ';;,,/', 'text/'.repeat(2_000)])(
    'answers the root with JSON for the Accept header %.20s',
    async (accept) => {
      const { status, body } = await api.raw('GET', '/', { headers: { accept } });
      expect(status).toBe(404);
      expect(JSON.parse(body)).toEqual({ errors: { detail: 'Not Found' } });
    },
  );

  test('answers a known path with another method with 404, never 405', async () => {
    for (const [method, path] of [
      ['PUT', '/room'],
      ['PATCH', '/room/x'],
      ['DELETE', '/room'],
      ['POST', '/health'],
      ['GET', '/room/x/peer'],
      ['TRACE', '/room'],
      ['HEAD', '/sip/a/b/call'],
    ] as const) {
      expect((await api.raw(method, path)).status).toBe(404);
    }
  });

  test('tolerates a trailing slash on every route', async () => {
    for (const route of ROUTES) {
      const path = pathOf(route);
      const plain = await api.raw(route.method.toUpperCase(), path);
      const slash = await api.raw(route.method.toUpperCase(), `${path}/`);
      expect([path, slash.status]).toEqual([path, plain.status]);
      expect(slash.body).not.toContain('detail');
    }
  });

  test('answers HEAD like GET, without a body', async () => {
    const head = await api.raw('HEAD', '/room');
    const get = await api.raw('GET', '/room');
    expect(head.status).toBe(200);
    expect(head.body).toBe('');
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
    expect((await api.raw('HEAD', '/room/none')).status).toBe(404);
  });

  test('accepts any Accept header', async () => {
    for (const accept of ['Application/json; Charset=utf-8', '*/*', 'text/html', 'image/png', '']) {
      expect((await api.raw('GET', '/room', { headers: { accept } })).status).toBe(200);
    }
  });

  test('blames the client for a path that cannot be decoded', async () => {
    for (const path of ['/room/%', '/room/%E0%A4', '/hls/%ff/x', '/recording/%']) {
      const answer = await api.raw('GET', path);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body)).toEqual({ errors: 'Bad Request' });
    }
  });
});

describe('headers', () => {
  test('allows every origin in every response', async () => {
    for (const [method, path] of [
      ['GET', '/room'],
      ['GET', '/none'],
      ['DELETE', '/room/none'],
      ['OPTIONS', '/room'],
    ] as const) {
      expect((await api.raw(method, path)).headers['access-control-allow-origin']).toBe('*');
    }
    expect((await api.raw('GET', '/room', { headers: { authorization: [] } })).headers).toHaveProperty(
      'access-control-allow-origin',
      '*',
    );
  });

  test('answers OPTIONS on any path without a token', async () => {
    for (const path of ['/room', '/room/x/peer', '/none/at/all', '*']) {
      const answer = await api.raw('OPTIONS', path, { headers: { authorization: [] } });
      expect(answer.headers['x-request-id']).toMatch(/^[\da-f]{20}$/);
      expect(answer.status).toBe(204);
      expect(answer.body).toBe('');
      expect(answer.headers['access-control-max-age']).toBe('1728000');
      expect(answer.headers['access-control-allow-headers']).toMatch(/Authorization, Content-Type/);
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect(answer.headers['access-control-allow-methods']).toContain(method);
      }
    }
  });

  test('keeps a request id of 20 to 200 characters, and replaces any other', async () => {
    const idFor = async (given?: string) =>
      (await api.raw('GET', '/room', { headers: given === undefined ? {} : { 'x-request-id': given } })).headers[
        'x-request-id'
      ];

    expect(await idFor('a'.repeat(20))).toBe('a'.repeat(20));
    expect(await idFor('b'.repeat(200))).toBe('b'.repeat(200));
    for (const given of [undefined, 'a'.repeat(19), 'b'.repeat(201)]) {
      const id = await idFor(given);
      expect(id).not.toBe(given);
      expect(id).toMatch(/^[\da-f]{20}$/);
    }
    expect(await idFor()).not.toBe(await idFor());
  });

  test('sends JSON as application/json; charset=utf-8, without express headers or conditional requests', async () => {
    const { headers } = await api.raw('GET', '/room');
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('etag');
    expect((await api.raw('GET', '/room', { headers: { 'if-none-match': '*' } })).status).toBe(200);
  });
});

describe('request bodies', () => {
  const create = (body: string | Buffer, headers: Record<string, string> = JSON_TYPE) =>
    api.raw('POST', '/room', { headers, body });

  test.each(['[]', '[1]', '[null,null]', '[{"roomId":"a"}]'])('%s is refused as not an object', async (body) => {
    const answer = await create(body);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({ errors: 'Invalid request body structure' });
    expect((await api.call('GET', '/room')).body.data).toEqual([]);
  });

  test.each(['"text"', '7', 'true', 'null'])('%s counts as no parameters', async (body) => {
    expect((await create(body)).status).toBe(201);
  });

  test('treats an empty body as {}', async () => {
    expect((await create('')).status).toBe(201);
    expect((await create('', {})).status).toBe(201);
  });

  test.each(['{', '{"a":}', 'text', '{"a":1}}', "{'a':1}", ' '])(
    'refuses the malformed body %j with a sentence',
    async (body) => {
      const answer = await create(body);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body)).toEqual({ errors: 'Request body is not valid JSON' });
    },
  );

  test('ignores a body of another type', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream', 'garbage']) {
      expect((await create('{"maxPeers":"x"', { 'content-type': type })).status).toBe(201);
    }
  });

  test('ignores query parameters of a POST', async () => {
    expect((await api.raw('POST', '/room?maxPeers=x', { headers: JSON_TYPE, body: '{}' })).status).toBe(201);
  });

  test('accepts media type parameters, and answers an undecodable body with 400, never 415', async () => {
    expect((await create('{"maxPeers":1}', { 'content-type': 'Application/JSON; charset=UTF-8' })).status).toBe(201);
    for (const charset of ['us-ascii', 'ISO-8859-1', 'nonsense']) {
      const answer = await create('{"maxPeers":2}', { 'content-type': `application/json; charset=${charset}` });
      expect(answer.status).toBe(201);
      expect(JSON.parse(answer.body).data?.room.config.maxPeers).toBe(2);
    }
    const wide = await create(Buffer.from('{"maxPeers":3}', 'utf16le'), {
      'content-type': 'application/json; charset=utf-16le',
    });
    expect(wide.status).toBe(201);
    expect(JSON.parse(wide.body).data?.room.config.maxPeers).toBe(3);
    expect((await create('{}', { ...JSON_TYPE, 'content-encoding': 'odd' })).status).toBe(400);
    expect((await create(gzipSync('{}'), { ...JSON_TYPE, 'content-encoding': 'gzip' })).status).toBe(201);
    expect((await create('no gzip', { ...JSON_TYPE, 'content-encoding': 'gzip' })).status).toBe(400);
  });

  test('answers more than 8 MB with 413, even if only after unpacking', async () => {
    const large = JSON.stringify({ x: 'y'.repeat(8_000_000) });
    expect((await create(large)).status).toBe(413);
    expect((await create(gzipSync(large), { ...JSON_TYPE, 'content-encoding': 'gzip' })).status).toBe(413);
    expect((await create(JSON.stringify({ x: 'y'.repeat(7_900_000) }))).status).toBe(201);
  });

  test.each([
    ['announced', 'content-length: 8000000'],
    ['compressed', 'content-encoding: gzip\r\ncontent-length: 100'],
  ])('limits large bodies that are %s in total, and passes small ones', async (_, header) => {
    const sockets = Array.from({ length: 8 }, () => {
      const socket = connect(api.port, '127.0.0.1').on('error', () => {});
      socket.write(
        `POST /room HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\ncontent-type: application/json\r\n${header}\r\n\r\n`,
      );
      return socket;
    });
    const large = JSON.stringify({ x: 'y'.repeat(7_900_000) });
    await until(async () => (await create(large)).status === 503);
    expect((await create('{}')).status).toBe(201);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await create(large)).status === 201);
  });

  test('does not report a client that disconnects in the middle of its body as a server error', async () => {
    const lines: string[] = [];
    await api.close();
    api = await TestApi.open({ log: createLogger({ sink: (line) => lines.push(line) }) });

    const socket = connect(api.port, '127.0.0.1').resume();
    socket.write(
      `POST /room HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a"`,
    );
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    socket.end();
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));

    expect((await api.raw('GET', '/room')).status).toBe(200);
    expect(lines).toEqual([]);
  });
});

test('counts traffic including headers', async () => {
  await api.raw('POST', '/room', { headers: JSON_TYPE, body: JSON.stringify({ roomId: 'a'.repeat(200) }) });
  await api.raw('GET', '/room');

  expect(api.traffic.received).toBeGreaterThan(400);
  expect(api.traffic.received).toBeLessThan(1_500);
  expect(api.traffic.sent).toBeGreaterThan(800);
  expect(api.traffic.sent).toBeLessThan(3_500);
});

test("omits the request's secrets from the log, but includes its path and id", async () => {
  const lines: string[] = [];
  await api.close();
  api = await TestApi.open({ log: createLogger({ level: 'debug', sink: (line) => lines.push(line) }) });
  const id = 'request-0123456789-abcdef';

  await api.raw('GET', '/room?token=hidden', { headers: { 'x-request-id': id } });
  api.rooms.fail(new Error('a bug'));
  await api.raw('GET', '/room/r1?token=hidden', { headers: { 'x-request-id': id } });

  expect(lines.join()).toContain(`request_id=${id} [error] http.failed method=GET path=/room/r1 error="a bug"`);
  expect(lines.join()).toContain('http.request method=GET path=/room status=200');
  expect(lines.join()).not.toMatch(new RegExp(`hidden|${TOKEN}`));
});

test('never answers 500, whatever a client with the token sends', async () => {
  const segment = fc.oneof(
    fc.constantFrom(
      'room',
      'r1',
      'peer',
      'component',
      'subscribe',
      'sip',
      'call',
      'hls',
      'recording',
      '.',
      '..',
      '%2e%2e',
      '..%2Fx',
      '%00',
      '%',
    ),
    fc.stringMatching(/^[!-"$-.0-;=@-~]{1,8}$/),
  );
  const value = fc.oneof(
    fc.json(),
    fc.string(),
    fc.constantFrom(
      '{"type":"webrtc"}',
      '{"type":"hls","options":{}}',
      '{"origins":["a"]}',
      '{"phoneNumber":"1"}',
      '{"__proto__":{"type":"webrtc"}}',
    ),
  );
  const method = fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'OPTIONS');
  await api.call('POST', '/room', { body: { roomId: 'r1' } });

  await fc.assert(
    fc.asyncProperty(method, fc.array(segment, { maxLength: 5 }), value, async (verb, segments, body) => {
      const path = `/${segments.join('/')}`;
      const answer = await api.raw(verb, path, { headers: JSON_TYPE, body });
      expect(answer.status).toBeLessThan(500);
    }),
    { numRuns: fuzzRuns(1_000) },
  );
});
