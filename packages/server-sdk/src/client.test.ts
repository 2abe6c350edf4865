import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { BloomClient } from './client.js';
import { BloomApiError, BloomConnectionError } from './errors.js';
import { refuse, serve, type TestServer } from './testing/server.js';

let server: TestServer;
let requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[];

afterEach(() => server.close());

async function clientOf(
  reply: (response: ServerResponse) => void,
  options: { path?: string; timeoutMs?: number; changeTimeoutMs?: number; token?: string } = {},
): Promise<BloomClient> {
  requests = [];
  server = await serve(({ method = '', url = '', headers }, response, body) => {
    requests.push({ method, url, headers, body });
    reply(response);
  });

  const { path = '', ...rest } = options;

  return new BloomClient({ url: `${server.url}${path}`, token: 'the-token', ...rest });
}

const json = (status: number, value: unknown) => (response: ServerResponse) => {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r'.repeat(20) });
  response.end(JSON.stringify(value));
};

describe('an API call', () => {
  test('is sent by the function that the caller passed in', async () => {
    const sent: string[] = [];
    const client = new BloomClient({
      url: 'http://127.0.0.1:9/media',
      token: 't',
      fetch: (url, init) => {
        sent.push(`${init.method} ${url.href}`);
        return Promise.resolve(new Response('{"data":["hall"]}'));
      },
    });
    server = await serve(() => undefined);
    expect(await client.listRecordings()).toEqual(['hall']);
    expect(sent).toEqual(['GET http://127.0.0.1:9/media/recording']);
  });

  test("carries the token and its options, and returns the answer's data", async () => {
    const room = { id: 'a', config: {}, components: [], peers: [] };
    const client = await clientOf(json(201, { data: { room, service_address: 'h:1' } }));
    expect(await client.createRoom({ maxPeers: 2, videoCodec: 'vp8' })).toEqual({ room, address: 'h:1' });
    const [request] = requests;
    expect(request).toMatchObject({ method: 'POST', url: '/room', body: '{"maxPeers":2,"videoCodec":"vp8"}' });
    expect(request?.headers).toMatchObject({ authorization: 'Bearer the-token', 'content-type': 'application/json' });
  });

  test('returns every address at which a new peer may connect', async () => {
    const peer = { id: 'p', type: 'webrtc', status: 'disconnected', tracks: [], metadata: null };
    const client = await clientOf(
      json(201, {
        data: { peer, token: 't', peer_websocket_url: 'h/ws', whip_url: 'http://h/whip', whep_url: 'http://h/whep' },
      }),
    );
    expect(await client.addPeer('r')).toEqual({
      peer,
      token: 't',
      websocketUrl: 'h/ws',
      whipUrl: 'http://h/whip',
      whepUrl: 'http://h/whep',
    });
  });

  test('returns an invitation, which a guest accepts without the API token', async () => {
    const client = await clientOf(json(201, { data: { token: 't', url: null, expires_at: 5 } }));
    const invitation = await client.createInvitation('r', { uses: 2, permissions: { publish: false } });
    expect(invitation).toEqual({ token: 't', url: null, expiresAt: 5 });
    expect(requests[0]?.body).toBe('{"uses":2,"permissions":{"publish":false}}');

    await server.close();
    await clientOf(
      json(201, { data: { peer: {}, token: 'p', peer_websocket_url: 'h', whip_url: 'i', whep_url: 'e' } }),
    );
    const guest = new BloomClient({ url: server.url });
    const seat = { peer: {}, token: 'p', websocketUrl: 'h', whipUrl: 'i', whepUrl: 'e' };
    expect(await guest.acceptInvitation('t', { name: 'Bob' })).toEqual(seat);
    expect(requests[0]).toMatchObject({ method: 'POST', url: '/invitation', body: '{"token":"t","name":"Bob"}' });
  });

  test('returns the token, the address and the expiry of a viewer', async () => {
    const client = await clientOf(json(201, { data: { token: 't', hls_url: 'http://h/hls/r/~t/x', expires_at: 5 } }));
    expect(await client.createViewer('r', { ttl: 60 })).toEqual({
      token: 't',
      hlsUrl: 'http://h/hls/r/~t/x',
      expiresAt: 5,
    });
    expect(requests[0]).toMatchObject({ method: 'POST', url: '/room/r/viewer', body: '{"ttl":60}' });
  });

  test('carries a token beyond Latin-1 as UTF-8', async () => {
    const client = await clientOf(json(200, { data: [] }), { token: 'ключ' });
    await client.listRooms();
    expect(Buffer.from(requests[0]?.headers.authorization ?? '', 'latin1').toString()).toBe('Bearer ключ');
  });

  test('keeps the path of the base URL, and encodes ids so that they cannot leave their place', async () => {
    const client = await clientOf(json(200, { data: {} }), { path: '/media' });
    await client.getRoom('a/../b?c');
    await client.deletePeer('x y', 'ü');
    await client.listRooms('cluster');
    await client.listRooms();
    await client.listRecordings('cluster');
    await client.listRecordings();
    expect(requests.map(({ url }) => url)).toEqual([
      '/media/room/a%2F..%2Fb%3Fc',
      '/media/room/x%20y/peer/%C3%BC',
      '/media/room?scope=cluster',
      '/media/room',
      '/media/recording?scope=cluster',
      '/media/recording',
    ]);
  });

  test('uses the right method, path and body for moderation', async () => {
    const client = await clientOf(json(200, { data: { delivered: 3 } }));
    await client.updateRoom('r', { maxPeers: null });
    await client.updatePeer('r', 'p', { metadata: null, permissions: { publish: ['audio'] } });
    await client.muteTrack('r', 'p', { id: 'p:mic', muted: true });
    await client.deleteTrack('r', 'p', 'p:mic');
    await client.deletePeer('r', 'p', 'too loud');
    await client.deletePeer('r', 'p');
    expect(await client.sendMessage('r', { topic: 'poll', data: 1, to: ['p'] })).toBe(3);
    expect(requests.map(({ method, url, body }) => `${method} ${url} ${body}`.trim())).toEqual([
      'PATCH /room/r {"maxPeers":null}',
      'PATCH /room/r/peer/p {"metadata":null,"permissions":{"publish":["audio"]}}',
      'PATCH /room/r/peer/p/track/p%3Amic {"muted":true}',
      'DELETE /room/r/peer/p/track/p%3Amic',
      'DELETE /room/r/peer/p {"reason":"too loud"}',
      'DELETE /room/r/peer/p',
      'POST /room/r/message {"topic":"poll","data":1,"to":["p"]}',
    ]);
  });

  test('applies a separate time limit to a call that changes something', async () => {
    const client = await clientOf(() => undefined, { timeoutMs: 60_000, changeTimeoutMs: 20 });
    await expect(client.deleteRoom('r')).rejects.toThrow(BloomConnectionError);
  });

  test('waits without a limit for a call that changes something', async () => {
    const client = await clientOf((response) => void setTimeout(() => response.writeHead(204).end(), 50), {
      timeoutMs: 20,
      changeTimeoutMs: Infinity,
    });
    expect(await client.deleteRoom('r')).toBeUndefined();
    await expect(client.getRoom('r')).rejects.toThrow(BloomConnectionError);
  });

  test('outlives its page only if it removes something', async () => {
    const client = await clientOf(json(200, { data: {} }));
    const asked = jest.spyOn(globalThis, 'fetch');
    await client.deletePeer('r', 'p');
    await client.getRoom('r');
    expect(asked.mock.calls.map(([, init]) => init?.keepalive)).toEqual([true, false]);
    asked.mockRestore();
  });

  test('warns once of each field that the server does not know', async () => {
    const warned = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const client = await clientOf((response) => {
      response.writeHead(200, { 'x-bloom-unknown-fields': 'persistant (persistent?), colour' }).end('{"data":{}}');
    });
    await client.updateRoom('r', {});
    await client.updateRoom('r', {});
    const texts = warned.mock.calls.map(([text]) => text as string);
    warned.mockRestore();
    expect(texts).toEqual([
      'Bloom ignored an unknown field in PATCH /room/r: persistant (persistent?)',
      'Bloom ignored an unknown field in PATCH /room/r: colour',
    ]);
  });

  test('makes no call for the files of a stream, whose addresses and header are available', async () => {
    const client = await clientOf(json(200, {}), { path: '/media', token: 'ключ' });
    expect(client.streamUrl('kitchen')).toBe(`${server.url}/media/hls/kitchen/index.m3u8`);
    expect(client.recordingUrl('a/b')).toBe(`${server.url}/media/recording/a%2Fb/index.m3u8`);
    await fetch(client.streamUrl('kitchen'), { headers: { authorization: client.authorization } });
    expect(Buffer.from(requests[0]?.headers.authorization ?? '', 'latin1').toString()).toBe('Bearer ключ');
  });

  test('lists the rooms of all nodes and the nodes that did not answer', async () => {
    const room = { id: 'a', config: {}, components: [], peers: [] };
    const client = await clientOf(json(200, { data: [room], unreachable: ['app@c'] }));
    expect(await client.snapshot()).toEqual({ type: 'snapshot', rooms: [room], unreachable: ['app@c'] });
    expect(requests[0]?.url).toBe('/room?scope=cluster');
  });

  test('makes no call for an id that would address something else', async () => {
    const client = await clientOf(json(200, { data: {} }));
    for (const id of ['', '.', '..']) {
      await expect(client.deletePeer('r', id)).rejects.toThrow(TypeError);
      await expect(client.getRoom(id)).rejects.toThrow('is not a valid id');
    }
    expect(requests).toEqual([]);
  });

  test('accepts answers without a body and in plain text', async () => {
    const client = await clientOf((response) => response.writeHead(204).end());
    expect(await client.deleteRoom('a')).toBeUndefined();
    await server.close();
    const other = await clientOf((response) => response.writeHead(201).end('Successfully subscribed for tracks'));
    expect(await other.subscribe('a', 'b', ['c'])).toBeUndefined();
    expect(requests[0]).toMatchObject({ url: '/room/a/component/b/subscribe', body: '{"origins":["c"]}' });
  });

  test.each<[string, (client: BloomClient) => Promise<unknown>, readonly [line: string, body: string]]>([
    ['addPeer', (c) => c.addPeer('r'), ['POST /room/r/peer', '{"type":"webrtc","options":{}}']],
    [
      'addComponent',
      (c) => c.addComponent('r', 'file', { filePath: 'a.ogg' }),
      ['POST /room/r/component', '{"type":"file","options":{"filePath":"a.ogg"}}'],
    ],
    ['deleteComponent', (c) => c.deleteComponent('r', 'c'), ['DELETE /room/r/component/c', '']],
    ['dial', (c) => c.dial('r', 'c', '+48'), ['POST /sip/r/c/call', '{"phoneNumber":"+48"}']],
    ['hangUp', (c) => c.hangUp('r', 'c'), ['DELETE /sip/r/c/call', '']],
    ['listRecordings', (c) => c.listRecordings(), ['GET /recording', '']],
    ['deleteRecording', (c) => c.deleteRecording('a'), ['DELETE /recording/a', '']],
    ['deleteRawRecording', (c) => c.deleteRawRecording('a', 'part_1'), ['DELETE /raw_recording/a/part_1', '']],
    [
      'deleteRawRecordingMix',
      (c) => c.deleteRawRecordingMix('a', 'part_1'),
      ['DELETE /raw_recording/a/part_1/mix', ''],
    ],
    ['health', (c) => c.health(), ['GET /health', '']],
  ])('%s requests its operation', async (_name, call, [line, body]) => {
    const client = await clientOf(json(200, { data: {} }));
    await call(client);
    expect(requests.map((request) => `${request.method} ${request.url}`)).toEqual([line]);
    expect(requests[0]?.body).toBe(body);
  });
});

describe('recordings of tracks', () => {
  const sizes = { tracks: 1, seconds: 2, bytes: 3 };
  const listed = { room: 'a', part: 'part_1', state: 'uploaded', ...sizes, started_at: 4, uploaded_at: 5 };

  test('are listed page by page', async () => {
    const client = await clientOf(json(200, { data: [listed], unreachable: [] }));
    const [last] = await client.listRawRecordings('cluster', { room: 'a', limit: 1 });
    expect(last).toEqual({ room: 'a', part: 'part_1', state: 'uploaded', ...sizes, startedAt: 4, uploadedAt: 5 });
    await client.listRawRecordings('local', { after: last! });
    expect(requests.map(({ url }) => url)).toEqual([
      '/raw_recording?scope=cluster&room=a&limit=1',
      '/raw_recording?after=a%2Fpart_1',
    ]);
  });

  test('are listed with the nodes that did not answer', async () => {
    const client = await clientOf(json(200, { data: [listed], unreachable: ['b@host'] }));
    const { recordings, unreachable } = await client.rawRecordingSnapshot({ room: 'a', limit: 7 });
    expect([recordings.map(({ part }) => part), unreachable]).toEqual([['part_1'], ['b@host']]);
    expect(requests.map(({ url }) => url)).toEqual(['/raw_recording?scope=cluster&room=a&limit=7']);
  });

  test('are listed without such nodes by a server that names none', async () => {
    const client = await clientOf(json(200, { data: [] }));
    expect(await client.rawRecordingSnapshot()).toEqual({ recordings: [], unreachable: [] });
  });

  const mix = { state: 'mixing', progress: 0.5, layout: 'grid', width: 1280, height: 720 };
  const given = { ...mix, requested_at: 6, ended_at: null };
  const mixed = { ...mix, requestedAt: 6, endedAt: null };

  test('are mixed', async () => {
    const client = await clientOf(json(202, { data: given }));
    expect(await client.mixRawRecording('a', 'part_1', { layout: 'grid' })).toEqual(mixed);
    expect(requests[0]).toMatchObject({ url: '/raw_recording/a/part_1/mix', body: '{"layout":"grid"}' });
  });

  test('are listed with their mix', async () => {
    const client = await clientOf(json(200, { data: [{ ...listed, mix: given }] }));
    expect((await client.listRawRecordings())[0]?.mix).toEqual(mixed);
  });

  test('have addresses that cannot leave their recording', async () => {
    const client = await clientOf(json(200, {}));
    expect(new URL(client.rawRecordingUrl('a', 'part_1', 'x/../y.ogg')).pathname).toBe(
      '/raw_recording/a/part_1/x%2F..%2Fy.ogg',
    );
  });
});

describe('a refusal by the server', () => {
  test("throws an error with the server's status, message and request id", async () => {
    const client = await clientOf(json(503, { errors: 'Reached peer limit in room a' }));
    const error = await client.addPeer('a').catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BloomApiError);
    expect(error).toMatchObject({ status: 503, message: 'Reached peer limit in room a', requestId: 'r'.repeat(20) });
  });

  test.each([
    [{ errors: { detail: 'Not Found' } }, 'Not Found'],
    [{}, 'the server answered 404 Not Found'],
    [null, 'the server answered 404 Not Found'],
    [{ errors: [1] }, 'the server answered 404 Not Found'],
  ])('throws an error with a message even if the body is %j', async (body, sentence) => {
    const client = await clientOf(json(404, body));
    await expect(client.getRoom('a')).rejects.toMatchObject({ code: 'API_ERROR', message: sentence });
  });

  test('accepts a refusal from a proxy that speaks HTML', async () => {
    const client = await clientOf((response) => response.writeHead(502, 'Bad Gateway').end('<h1>502</h1>'));
    await expect(client.health()).rejects.toMatchObject({
      status: 502,
      message: 'the server answered 502 Bad Gateway',
    });
  });
});

describe('a missing answer', () => {
  test('causes a connection error that names the call after the time limit', async () => {
    const client = await clientOf(() => undefined, { timeoutMs: 50 });
    const error = await client.health().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BloomConnectionError);
    expect(error).toMatchObject({ code: 'CONNECTION_ERROR', message: expect.stringContaining('GET http://127.0.0.1') });
  });

  test('causes a connection error if the answer stops halfway', async () => {
    const client = await clientOf(
      (response) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('{');
      },
      { timeoutMs: 100 },
    );
    await expect(client.health()).rejects.toThrow(BloomConnectionError);
  });

  test('causes a connection error with the reason if no one listens or the connection breaks', async () => {
    const client = await clientOf((response) => response.destroy());
    await expect(client.health()).rejects.toThrow(BloomConnectionError);
    await server.close();
    server = await refuse();
    const refused = new BloomClient({ url: server.url, token: 't' });
    await expect(refused.health()).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe('several nodes', () => {
  /** Two nodes, the first of which no longer answers. */
  async function pair(first?: TestServer): Promise<{ client: BloomClient; gone: TestServer; asked: string[] }> {
    const asked: string[] = [];
    const gone =
      first ??
      (await serve(({ method = '' }, response) => {
        asked.push(`a ${method}`);
        response.destroy();
      }));
    server = await serve(({ method = '' }, response) => {
      asked.push(`b ${method}`);
      json(200, { data: [] })(response);
    });

    return { client: new BloomClient({ url: [gone.url, server.url], token: 't' }), gone, asked };
  }

  test('moves a query to the next node if one does not answer, and stays there', async () => {
    const { client, gone, asked } = await pair();
    expect(await client.listRooms()).toEqual([]);
    await client.deleteRoom('r');
    expect(asked).toEqual(['a GET', 'b GET', 'b DELETE']);
    await gone.close();
  });

  test('does not repeat a change that a node may have made, and asks another node in the next call', async () => {
    const { client, gone, asked } = await pair();
    await expect(client.createRoom()).rejects.toThrow(BloomConnectionError);
    await client.listRooms();
    expect(asked).toEqual(['a POST', 'b GET']);
    await gone.close();
  });

  test('moves a change to the next node if one cannot be reached', async () => {
    const { client, gone, asked } = await pair(await refuse());
    await client.deleteRoom('r');
    expect(asked).toEqual(['b DELETE']);
    await gone.close();
  });

  test('throws the last failure if all nodes are unreachable; an empty list is a TypeError', async () => {
    const gone = await refuse();
    server = await refuse();
    const client = new BloomClient({ url: [gone.url, server.url], token: 't' });
    await expect(client.listRooms()).rejects.toThrow(/ECONNREFUSED/);
    expect(() => new BloomClient({ url: [], token: 't' })).toThrow(TypeError);
    await gone.close();
  });
});
