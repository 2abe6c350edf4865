import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { defaultRoomConfig } from '@bloom/rooms';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_REQUESTS_PER_PEER } from './auth.js';
import { CERT, KEY } from './testing/certificate.js';
import { TestApi, TOKEN } from './testing/api.js';

const FINGERPRINT = Array.from({ length: 32 }, () => 'AB').join(':');
const OFFER = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'a=group:BUNDLE 0 1',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'a=mid:0',
  'a=sendonly',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  `a=fingerprint:sha-256 ${FINGERPRINT}`,
  'a=setup:actpass',
  'a=rtpmap:111 opus/48000/2',
  'm=video 9 UDP/TLS/RTP/SAVPF 96',
  'a=mid:1',
  'a=sendonly',
  'a=rtpmap:96 VP8/90000',
  '',
].join('\r\n');
const WATCH = OFFER.replaceAll('a=sendonly', 'a=recvonly');
const RESTART = 'a=ice-ufrag:efgh\r\na=ice-pwd:abcdefabcdefabcdefabcd\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n';

let api: TestApi;
let room: string;
let token: string;

beforeAll(async () => {
  api = await TestApi.open();
});
afterAll(() => api.close());
beforeEach(async () => {
  room = (await api.call('POST', '/room', { body: {} })).body.data.room.id;
  token = await tokenOfPeer();
});

async function tokenOfPeer(): Promise<string> {
  return (await api.call('POST', `/room/${room}/peer`, { body: { type: 'webrtc' } })).body.data.token;
}

interface Given {
  body?: string;
  type?: string;
  bearer?: string | null;
  headers?: Record<string, string>;
}

function send(method: string, path: string, given: Given = {}) {
  const { body, type = 'application/sdp', bearer = token, headers = {} } = given;
  return api.raw(method, path, {
    headers: {
      authorization: bearer === null ? '' : `Bearer ${bearer}`,
      ...(body === undefined ? {} : { 'content-type': type }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
}

async function opened(path = '/whip', body = OFFER): Promise<string> {
  const { status, headers } = await send('POST', path, { body });
  expect(status).toBe(201);
  return String(headers['location']).replace('/path', '');
}

function fragment(path: string, ifMatch: string | undefined, body = RESTART) {
  const type = 'application/trickle-ice-sdpfrag';
  return send('PATCH', path, { body, type, headers: ifMatch === undefined ? {} : { 'if-match': ifMatch } });
}

test('returns WHIP and WHEP addresses for a new peer with the scheme that its client needs', async () => {
  const room = (await api.call('POST', '/room', { body: {} })).body.data.room.id;
  const add = (headers: Record<string, string>) =>
    api.call('POST', `/room/${room}/peer`, { body: { type: 'webrtc' }, headers });
  expect((await add({})).body.data).toMatchObject({
    peer_websocket_url: 'media.example:4000/path/socket/peer/websocket',
    whip_url: 'http://media.example:4000/path/whip',
    whep_url: 'http://media.example:4000/path/whep',
  });
  expect((await add({ 'x-forwarded-proto': 'https' })).body.data.whip_url).toBe('https://media.example:4000/path/whip');
});

test('returns TLS addresses from a TLS listener, whatever a proxy of the backend claims', async () => {
  const encrypted = await TestApi.open({}, { key: KEY, cert: CERT });
  try {
    const { room } = await encrypted.rooms.createRoom(defaultRoomConfig);
    const answer = await new Promise<string>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        'x-forwarded-proto': 'http',
      };
      const url = `https://127.0.0.1:${encrypted.port}/room/${room.id}/peer`;
      httpsRequest(url, { method: 'POST', headers, ca: CERT, servername: 'localhost', agent: false }, (response) =>
        response.on('data', (chunk: Buffer) => resolve(chunk.toString())),
      )
        .on('error', reject)
        .end('{"type":"webrtc"}');
    });
    expect(JSON.parse(answer)).toMatchObject({ data: { whip_url: 'https://media.example:4000/path/whip' } });
  } finally {
    await encrypted.close();
  }
});

describe.each([
  ['/whip', OFFER],
  ['/whep', WATCH],
])('POST %s', (path, offer) => {
  test('answers with session, entity tag and relay', async () => {
    const { status, headers, body } = await send('POST', path, { body: offer });
    expect(status).toBe(201);
    expect(headers).toMatchObject({
      'content-type': 'application/sdp',
      etag: '"1"',
      'access-control-expose-headers': 'location, link, etag',
      'access-control-allow-origin': '*',
      link: ['turn:192.0.2.1:50000?transport=udp', 'turns:media.example.com:443?transport=tcp']
        .map((url) => `<${url}>; rel="ice-server"; username="1:ann"; credential="secret"; credential-type="password"`)
        .join(', '),
    });
    expect(headers['location']).toMatch(new RegExp(`^/path${path}/[0-9a-f-]{36}$`));
    expect(body).toContain('a=candidate:1 1 UDP 2130706431 192.0.2.1 50000 typ host\r\na=end-of-candidates\r\n');
    expect(body).toContain('a=ice-lite');
  });

  test.each([
    ['a missing token', { bearer: null }, { status: 401, sentence: /Missing token/ }],
    ['a wrong token', { bearer: 'wrong' }, { status: 401, sentence: /Invalid token/ }],
    ['another content type', { type: 'text/plain' }, { status: 415, sentence: /application\/sdp/ }],
    ['garbage', { body: 'v=0\r\nhello' }, { status: 400, sentence: /SDP offer is not usable/ }],
    ['too long a body', { body: 'x'.repeat(64 * 1024 + 1) }, { status: 413, sentence: /65536 bytes/ }],
    [
      'no known codec',
      { body: offer.replace('VP8', 'VP6').replace('opus', 'G722') },
      { status: 406, sentence: /The room allows .* has:/ },
    ],
  ] as const)('refuses %s', async (_what, given, { status, sentence }) => {
    const answer = await send('POST', path, { body: offer, ...given });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({ errors: expect.stringMatching(sentence) });
  });

  test('refuses the other direction with a sentence', async () => {
    const { status, body } = await send('POST', path, { body: offer === OFFER ? WATCH : OFFER });
    expect(status).toBe(400);
    expect(JSON.parse(body).errors).toMatch(/no audio or video m-line that/);
  });

  test.each(['GET', 'HEAD', 'PUT'])('answers %s with 405 and the allowed methods', async (method) => {
    expect(await send(method, path)).toMatchObject({ status: 405, headers: { allow: 'POST, OPTIONS' } });
    expect(await send(method, `${path}/1`)).toMatchObject({
      status: 405,
      headers: { allow: 'PATCH, DELETE, OPTIONS' },
    });
  });

  test('answers a preflight', async () => {
    const { status, headers } = await send('OPTIONS', path, { bearer: null });
    expect(status).toBe(204);
    expect(headers['accept-post']).toBe('application/sdp');
    expect(headers['access-control-allow-headers']).toMatch(/, If-Match$/);
  });
});

describe('a publisher of AV1 in a room with a component', () => {
  const publish = async (type: string, options: object, codec = 'AV1') => {
    const added = await api.call('POST', `/room/${room}/component`, { body: { type, options } });
    expect(added.status).toBe(201);

    return send('POST', '/whip', { body: OFFER.replace('VP8', codec) });
  };
  const sentence = (taker: string, codec = 'AV1') => ({
    errors: `The room's ${taker} takes constrained baseline H.264 or VP8 or VP9 of profile 0 for video, the SDP offer has: ${codec}`,
  });

  test('gets 406 beside a stream of every track', async () => {
    const { status, body } = await publish('hls', { anyCodec: true });
    expect(status).toBe(406);
    expect(JSON.parse(body)).toEqual(sentence('HLS stream'));
  });

  test('gets 406 beside a recording of every track', async () => {
    const { status, body } = await publish('recording', { anyCodec: true }, 'H265');
    expect(status).toBe(406);
    expect(JSON.parse(body)).toEqual(sentence('recording', 'H265'));
  });

  test.each([
    ['a stream of chosen tracks', 'hls', { anyCodec: true, subscribeMode: 'manual' }],
    ['a recording of sound', 'recording', { anyCodec: true, audioOnly: true }],
    ['a component that takes no pictures', 'sip', { registrarCredentials: {} }],
  ])('connects beside %s', async (_what, type, options) => {
    expect((await publish(type, options)).status).toBe(201);
  });

  test('connects with a codec that the stream takes', async () => {
    expect((await publish('hls', { anyCodec: true }, 'VP9')).status).toBe(201);
  });
});

describe.each(['/whip', '/whep'])('OPTIONS %s', (path) => {
  const linkTo = ({ headers }: Awaited<ReturnType<typeof send>>) => headers['link'];

  test('names the relay to a peer with a valid token, as the session does', async () => {
    const before = await send('OPTIONS', path);
    expect(before).toMatchObject({
      status: 204,
      headers: { 'access-control-expose-headers': 'location, link, etag', 'accept-post': 'application/sdp' },
    });
    const body = path === '/whip' ? OFFER : WATCH;
    expect(linkTo(before)).toBe(linkTo(await send('POST', path, { body })));
    expect(linkTo(before)).toMatch(/^<turn:192\.0\.2\.1:50000\?transport=udp>; rel="ice-server"; username=/);
    expect(linkTo(await send('OPTIONS', path))).toBe(linkTo(before));
  });

  test.each([
    ['without a token', null],
    ['with a wrong token', 'wrong'],
    ['with the token of the API', TOKEN],
    ['with the token of a peer that does not exist', 'token of none nobody'],
  ])('names no relay %s', async (_what, bearer) => {
    const answer = await send('OPTIONS', path, { bearer });
    expect(answer).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': '*' } });
    expect(linkTo(answer)).toBeUndefined();
  });

  test('stays a preflight while the owner of the room cannot be reached', async () => {
    api.rooms.fail('OWNER_UNREACHABLE');
    const answer = await send('OPTIONS', path);
    expect(answer.status).toBe(204);
    expect(linkTo(answer)).toBeUndefined();
  });
});

describe('a WHIP or WHEP session', () => {
  test('accepts candidates for a session, which it does not need', async () => {
    expect(await fragment(await opened(), '"1"', 'a=candidate:1 1 udp 1 192.0.2.2 9 typ host\r\n')).toMatchObject({
      status: 204,
      body: '',
    });
  });

  test.each(['"*"', '*', '"1"'])('restarts ICE with If-Match %s', async (ifMatch) => {
    const session = await opened('/whep', WATCH);
    const { status, headers, body } = await fragment(session, ifMatch);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/trickle-ice-sdpfrag');
    expect(headers['etag']).toBe('"2"');
    expect(body).toMatch(/^a=ice-lite\r\n.*a=ice-ufrag:\S{8}\r\na=ice-pwd:\S{24}\r\n/s);
    expect((await fragment(session, '"1"')).status).toBe(412);
    expect((await fragment(session, '"2"')).status).toBe(204);
  });

  test('requires If-Match, a fragment that parses and the content type for a session update', async () => {
    const session = await opened();
    expect((await fragment(session, undefined)).status).toBe(428);
    expect((await fragment(session, '*', 'a=ice-ufrag:abcd')).status).toBe(400);
    expect((await send('PATCH', session, { body: RESTART, headers: { 'if-match': '*' } })).status).toBe(415);
  });

  test('ends a session on DELETE', async () => {
    const session = await opened();
    expect((await send('DELETE', session, { bearer: 'wrong' })).status).toBe(401);
    expect(await send('DELETE', session)).toMatchObject({ status: 200, body: '' });
    expect((await send('DELETE', session)).status).toBe(404);
    expect((await fragment(session, '*')).status).toBe(404);
  });
});

test('accepts exactly one source for a viewer', async () => {
  await opened('/whep?peer=ann', WATCH);
  await opened('/whep?track=t1', WATCH);
  expect((await send('POST', '/whep?peer=ann&track=t1', { body: WATCH })).status).toBe(400);
});

test("frees a peer's share of concurrent requests each time", async () => {
  const other = await tokenOfPeer();
  const begin = async () => {
    const socket = connect(api.port, '127.0.0.1');
    socket.write(
      `POST /whip HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\nexpect: 100-continue\r\n` +
        'content-type: application/sdp\r\ncontent-length: 65536\r\n\r\nv=0\r\n',
    );
    const answers = [String((await once(socket, 'data'))[0])];
    socket.on('data', (more: Buffer) => answers.push(String(more)));
    return { socket, answers };
  };

  for (let round = 0; round < 2; round += 1) {
    const halves = await Promise.all(Array.from({ length: MAX_REQUESTS_PER_PEER }, begin));
    const refused = await send('POST', '/whip', { body: OFFER });
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toEqual({ errors: 'The peer has 32 requests in progress' });
    expect((await send('POST', '/whip', { body: OFFER, bearer: other })).status).toBe(201);
    expect(new Set(halves.flatMap(({ answers }) => answers))).toEqual(new Set(['HTTP/1.1 100 Continue\r\n\r\n']));

    if (round === 0) {
      for (const { socket } of halves) socket.write('x'.repeat(65_536 - 'v=0\r\n'.length));
      while (halves.some(({ answers }) => !answers.some((text) => text.startsWith('HTTP/1.1 400 ')))) {
        await new Promise(setImmediate);
      }
    }
    for (const { socket } of halves) socket.destroy();
  }
  while ((await send('DELETE', '/whip/none')).status === 429);
  expect((await send('POST', '/whip', { body: OFFER })).status).toBe(201);
});
