import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { CheckedApi, openApi, operations } from './support/checked-api.js';
import { freePorts, type Node, runProgram, startProgram } from './support/program.js';

jest.setTimeout(30_000);

let node: Node;
let api: CheckedApi;

beforeAll(async () => {
  node = await startProgram();
  api = new CheckedApi(node.url);
});
afterAll(() => node.dispose());

describe('authorization', () => {
  test('requires authorization for every documented operation', () => {
    const open = operations.filter(({ scheme }) => scheme === undefined).map(({ template }) => template);
    // Guests have the token of their invitation, in the body; probes have none.
    expect(open).toEqual(['/invitation', '/health/live', '/health/ready']);
    expect(operations.filter(({ scheme }) => scheme === 'authorization').length).toBeGreaterThanOrEqual(16);
  });

  const good = 'Bearer development';
  const matrix: [string, string | null, Record<string, string[]>][] = [
    ['no header', null, {}],
    ['another scheme', 'Basic development', {}],
    ['a wrong token behind a scheme in lower case', 'bearer wrong', {}],
    ['the bare token', 'development', {}],
    ['an empty header', '', {}],
    ['a wrong token', 'Bearer wrong', {}],
    ['a longer token', `${good}x`, {}],
    ['a shorter token', good.slice(0, -1), {}],
    ['two headers', null, { authorization: [good, good] }],
  ];

  const secured = operations.filter(({ scheme }) => scheme !== undefined);
  test.each(secured)(
    'gives one response for each kind of authorization error of $method $template',
    async (operation) => {
      const { method, path, scheme } = operation;
      for (const [what, authorization, headers] of matrix) {
        const answer = await api.raw(method, path, { authorization, headers });
        expect([what, answer.status, typeof answer.body.errors]).toEqual([what, 401, 'string']);
        const wrongToken = authorization?.toLowerCase().startsWith('bearer ') === true;
        expect(answer.body.errors).toMatch(wrongToken ? /invalid/i : /missing/i);
      }
      // The right token is accepted, so later errors concern the request. The API token is not a peer token.
      const { status } = await api.call(method, path, method === 'POST' ? {} : undefined);
      if (scheme === 'authorization') expect(status).not.toBe(401);
      else expect(status).toBe(401);
      for (const id of await rooms()) await api.call('DELETE', `/room/${id}`);
    },
  );

  test.each(['bearer', 'BEARER', 'Bearer'])('takes the scheme as %s', async (scheme) => {
    const { status } = await api.with({ authorization: `${scheme} development` }).call('GET', '/room');
    expect(status).toBe(200);
  });

  test('checks authorization before any look-up or check of the body', async () => {
    const authorization = 'Bearer wrong';
    expect((await api.with({ authorization }).call('POST', '/room', { maxPeers: 'x' })).status).toBe(401);
    expect((await api.with({ authorization }).call('GET', '/room/nobody')).status).toBe(401);
  });
});

async function rooms(): Promise<string[]> {
  const { body } = await api.call('GET', '/room');

  return body.data.map(({ id }: { id: string }) => id);
}

describe('bodies', () => {
  const json = { 'content-type': 'application/json' };

  test.each(['[]', '[1]', '[null,null]'])('are refused as the array %s', async (body) => {
    const answer = await api.raw('POST', '/room', { headers: json, body });
    expect(answer.status).toBe(400);
  });

  test.each([
    ['nothing', {}],
    ['an empty object', { headers: json, body: '{}' }],
    ['no bytes of JSON', { headers: json, body: '' }],
    ['a text', { headers: json, body: '"maxPeers"' }],
    ['a number', { headers: json, body: '5' }],
    ['null', { headers: json, body: 'null' }],
    ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'maxPeers=x' }],
    ['a text of another type', { headers: { 'content-type': 'text/plain' }, body: '{"maxPeers":"x"}' }],
    ['JSON with a charset', { headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{}' }],
  ])('creates a default room with %s', async (_what, options) => {
    const { status, body } = await api.raw('POST', '/room', options);
    expect(status).toBe(201);
    expect(body.data.room.config).toEqual({
      roomId: body.data.room.id,
      maxPeers: null,
      videoCodec: null,
      webhookUrl: null,
      peerlessPurgeTimeout: null,
      peerDisconnectedTimeout: null,
    });
    await api.call('DELETE', `/room/${body.data.room.id}`);
  });

  test('refuses bodies that are not JSON with a text', async () => {
    for (const body of ['{', '{"a":}', '{"a":1}}', '\u0000']) {
      const answer = await api.raw('POST', '/room', { headers: json, body });
      expect(answer.status).toBe(400);
      expect(typeof answer.body.errors).toBe('string');
    }
  });

  test('refuses bodies above 8 MB, whether or not they announce their length', async () => {
    const body = JSON.stringify({ roomId: 'x'.repeat(8_000_001) });
    expect((await api.raw('POST', '/room', { headers: json, body })).status).toBe(413);
  });

  test('takes the parameters of a POST from its body only', async () => {
    const { status, body } = await api.call('POST', '/room?maxPeers=x&videoCodec=h264', {});
    expect(status).toBe(201);
    expect(body.data.room.config.videoCodec).toBeNull();
    await api.call('DELETE', `/room/${body.data.room.id}`);
  });

  test('refuses or accepts bodies nested deeper than any stack, and never causes a fault', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    for (const body of [`{"roomId":${deep}}`, deep, `{"unknown":${deep}}`]) {
      const answer = await api.raw('POST', '/room', { headers: json, body });
      expect([201, 400]).toContain(answer.status);
    }
    for (const id of await rooms()) await api.call('DELETE', `/room/${id}`);
  });
});

describe('routes', () => {
  test("answers with the framework's 404 if the path or method does not exist", async () => {
    for (const [method, path] of [
      ['GET', '/rooms'],
      ['PUT', '/room'],
      ['PUT', '/room/x'],
      ['POST', '/health'],
      ['DELETE', '/room'],
      ['GET', '/room/x/peer'],
      ['GET', '/ROOM'],
      ['GET', '//room'],
      ['GET', '/room/x/peer/y/z'],
    ] as const) {
      const answer = await api.raw(method, path, { authorization: null });
      expect([method, path, answer.status, answer.text]).toEqual([
        method,
        path,
        404,
        '{"errors":{"detail":"Not Found"}}',
      ]);
    }
  });

  test('accepts a trailing slash', async () => {
    const id = await api.room();
    const peer = await api.peer(id);
    expect((await api.call('GET', `/room/${id}/`)).status).toBe(200);
    expect((await api.call('GET', '/room/')).status).toBe(200);
    expect((await api.call('GET', '/health/')).status).toBe(200);
    expect((await api.call('POST', `/room/${id}/component/x/subscribe/`, { origins: [] })).status).toBe(400);
    expect((await api.call('DELETE', `/room/${id}/peer/${peer.id}/`)).status).toBe(204);
    expect((await api.call('DELETE', `/room/${id}/`)).status).toBe(204);
  });

  test('splits paths before decoding, and keeps dot segments', async () => {
    expect((await api.raw('GET', '/room/a%2Fb')).body.errors).toBe('Room a/b does not exist');
    expect((await api.raw('DELETE', '/recording/.')).status).toBe(400);
    expect((await api.raw('DELETE', '/recording/..%2Fx')).status).toBe(400);
    expect((await api.raw('GET', '/recording/..%2Fx/index.m3u8')).status).toBe(400);
    expect((await api.raw('GET', '/hls/room/..%2Findex.m3u8')).status).toBe(400);
    expect((await api.raw('GET', '/room/%zz')).status).toBe(400);
    expect((await api.raw('GET', '/room/%00')).status).toBe(404);
  });
});

describe('answers', () => {
  test('answers HEAD like GET, without the body', async () => {
    const id = await api.room();
    const get = await api.call('GET', `/room/${id}`);
    const head = await api.raw('HEAD', `/room/${id}`);
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
    expect((await api.raw('HEAD', '/room/nobody')).status).toBe(404);
    expect((await api.raw('HEAD', '/room', { authorization: null })).status).toBe(401);
    await api.call('DELETE', `/room/${id}`);
  });

  test('opens answers to pages of other origins, preflights included', async () => {
    for (const [method, path] of [
      ['GET', '/health'],
      ['GET', '/room/nobody'],
      ['GET', '/nowhere'],
    ] as const) {
      const { headers } = await api.raw(method, path, { headers: { origin: 'https://app.example' } });
      expect(headers['access-control-allow-origin']).toBe('*');
    }
    const { headers: refused } = await api.raw('GET', '/health', { authorization: null });
    expect(refused['access-control-allow-origin']).toBe('*');

    for (const path of ['/room', '/nowhere', '/socket/peer/websocket']) {
      const { status, headers, text } = await api.raw('OPTIONS', path, { authorization: null });
      expect(status).toBe(204);
      expect(text).toBe('');
      expect(headers['access-control-max-age']).toBe('1728000');
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect(headers['access-control-allow-methods']).toContain(method);
      }
      expect(headers['access-control-allow-headers']).toMatch(/Authorization.*Content-Type/);
    }
  });

  test('sends a request id: that of the client if it has 20 to 200 characters', async () => {
    const idOf = async (given?: string) =>
      (await api.with(given === undefined ? {} : { headers: { 'x-request-id': given } }).call('GET', '/health'))
        .headers['x-request-id'];
    expect(await idOf()).toMatch(/^.{20,200}$/);
    expect(await idOf('a'.repeat(20))).toBe('a'.repeat(20));
    expect(await idOf('a'.repeat(200))).toBe('a'.repeat(200));
    expect(await idOf('a'.repeat(19))).not.toBe('a'.repeat(19));
    expect(await idOf('a'.repeat(201))).not.toBe('a'.repeat(201));
    const failed = await api.raw('GET', '/room/nobody', { headers: { 'x-request-id': 'b'.repeat(36) } });
    expect(failed.headers['x-request-id']).toBe('b'.repeat(36));
  });

  test('ignores the Accept header', async () => {
    for (const accept of ['Application/json; Charset=utf-8', '*/*', 'application/json, text/plain, */*', 'text/html']) {
      const { status, headers } = await api.with({ headers: { accept } }).call('GET', '/room');
      expect([accept, status, headers['content-type']]).toEqual([accept, 200, 'application/json; charset=utf-8']);
    }
  });
});

describe('the description', () => {
  test('serves the description in the development profile, equal to the committed one, with a page', async () => {
    const document = await fetch(`${node.url}/openapi.json`);
    expect(await document.json()).toEqual(openApi);
    const page = await fetch(`${node.url}/docs`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  });

  test('requires the keys by which SDKs distinguish kinds of components', () => {
    const { schemas } = openApi.components as { schemas: Record<string, { required?: string[] }> };
    const keys = (kind: string) => schemas[`ComponentProperties${kind}`]?.required?.toSorted();
    expect(keys('HLS')).toEqual(
      ['lowLatency', 'persistent', 'playable', 's3', 'subscribeMode', 'targetWindowDuration'].toSorted(),
    );
    expect(keys('RTSP')).toEqual(['keepAliveInterval', 'pierceNat', 'reconnectDelay', 'rtpPort', 'sourceUri']);
    expect(keys('File')).toEqual(['filePath', 'framerate']);
    expect(keys('SIP')).toEqual(['registrarCredentials']);
    expect(keys('Recording')).toEqual(['subscribeMode']);
    expect(schemas['Room']?.required?.toSorted()).toEqual(['components', 'config', 'id', 'peers']);
    expect(schemas['Peer']?.required?.toSorted()).toEqual(['id', 'metadata', 'status', 'tracks', 'type']);
  });

  test('does not serve the description in the production profile', async () => {
    const production = await startInProduction();
    try {
      for (const path of ['/openapi.json', '/docs', '/']) {
        expect((await fetch(`${production.url}${path}`)).status).toBe(404);
      }
      const health = await fetch(`${production.url}/health`, { headers: { authorization: 'Bearer a-real-token' } });
      expect(health.status).toBe(200);
    } finally {
      await production.dispose();
    }
  });
});

async function startInProduction(): Promise<{ url: string; dispose: () => Promise<void> }> {
  const { port, env } = await freePorts();
  const program = runProgram({ ...env, NODE_ENV: 'production', JF_SERVER_API_TOKEN: 'a-real-token' });
  await program.says('listens on');

  return { url: `http://127.0.0.1:${port}`, dispose: program.dispose };
}
