// Reproduces what the published server SDKs and dashboard send, byte for byte where it matters, and how strictly they
// read the responses. From their public sources: jellyfish-server-sdk 0.4 and fishjam-server-sdk 0.5 for Python (httpx,
// betterproto, websockets), the JavaScript SDKs and the dashboard (axios, a browser).
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import WebSocket from 'ws';
import { CheckedApi, type CheckedAnswer } from './support/checked-api.js';
import { type Node, startProgram } from './support/program.js';

jest.setTimeout(30_000);

const python = {
  accept: '*/*',
  'accept-encoding': 'gzip, deflate',
  connection: 'keep-alive',
  'user-agent': 'python-httpx/0.26.0',
};
const axios = { accept: 'application/json, text/plain, */*', 'user-agent': 'axios/1.6.7' };
const json = { 'content-type': 'application/json' };

let node: Node;
let api: CheckedApi;

beforeAll(async () => {
  node = await startProgram({ JF_SIP_USED: 'true', JF_SIP_IP: '127.0.0.1' });
  api = new CheckedApi(node.url);
  const sources = join(node.folder, 'bloom_resources', 'file_component_sources');
  mkdirSync(sources, { recursive: true });
  writeFileSync(join(sources, 'video.h264'), '');
});
afterAll(() => node.dispose());

/** Sends a request as Python's json.dumps and httpx write it. */
const dumps = (value: unknown): string =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, ' ')
    .replaceAll(/([[{]) | ([\]}])/g, '$1$2');
const post = (path: string, body: unknown): Promise<CheckedAnswer> =>
  api.raw('POST', path, { headers: { ...python, ...json }, body: dumps(body) });
const call = (method: string, path: string): Promise<CheckedAnswer> => api.raw(method, path, { headers: python });
const config = (given: object = {}) => ({
  maxPeers: null,
  peerDisconnectedTimeout: null,
  peerlessPurgeTimeout: null,
  roomId: null,
  videoCodec: null,
  webhookUrl: null,
  ...given,
});

type Shape = Readonly<Record<string, (value: unknown) => boolean>>;
const isText = (value: unknown): boolean => typeof value === 'string';
const isBool = (value: unknown): boolean => typeof value === 'boolean';
const isInt = (value: unknown): boolean => Number.isInteger(value);
const isIntOrNull = (value: unknown): boolean => value === null || isInt(value);
const isMode = (value: unknown): boolean => value === 'auto' || value === 'manual';
/** The shapes that the generated Python client tries, in its order. The first whose keys are all present wins. */
const SHAPES: readonly (readonly [string, Shape])[] = [
  [
    'hls',
    {
      lowLatency: isBool,
      persistent: isBool,
      playable: isBool,
      subscribeMode: isMode,
      targetWindowDuration: isIntOrNull,
    },
  ],
  ['rtsp', { keepAliveInterval: isInt, pierceNat: isBool, reconnectDelay: isInt, rtpPort: isInt, sourceUri: isText }],
  ['file', { filePath: isText, framerate: isIntOrNull }],
  ['sip', { registrarCredentials: (value) => typeof value === 'object' && value !== null }],
  ['recording', { subscribeMode: isMode }],
];

function classOf(component: {
  id: unknown;
  type: unknown;
  tracks: unknown;
  properties: Record<string, unknown>;
}): string {
  expect([typeof component.id, typeof component.type, Array.isArray(component.tracks)]).toEqual([
    'string',
    'string',
    true,
  ]);
  const fits = ([, shape]: readonly [string, Shape]): boolean =>
    Object.entries(shape).every(
      ([key, holds]) => Object.hasOwn(component.properties, key) && holds(component.properties[key]),
    );

  return SHAPES.find(fits)?.[0] ?? 'none';
}

describe('the Python SDKs', () => {
  test('create, list, show and delete rooms, and compare whole objects', async () => {
    const { status, body } = await post('/room', config({ maxPeers: 10, videoCodec: 'h264' }));
    expect(status).toBe(201);
    const { room, jellyfish_address: v04, fishjam_address: v05 } = body.data;
    expect(v04).toBe(`127.0.0.1:${node.port}`);
    expect(v05).toBe(`127.0.0.1:${node.port}`);
    const wanted = { components: [], config: config({ roomId: room.id, maxPeers: 10, videoCodec: 'h264' }), peers: [] };
    expect(room).toEqual({ ...wanted, id: room.id });
    expect((await call('GET', '/room')).body.data).toContainEqual(room);
    expect((await call('GET', `/room/${room.id}`)).body.data).toEqual(room);
    expect((await call('DELETE', `/room/${room.id}`)).status).toBe(204);
    expect((await call('GET', '/room')).body.data).not.toContainEqual(room);
  });

  test('map 400, 401, 404 and 503 with a text to specific errors', async () => {
    const { id } = (await post('/room', config({ maxPeers: 1 }))).body.data.room;
    const peer = { options: { enableSimulcast: true }, type: 'webrtc' };
    await post(`/room/${id}/peer`, peer);
    const wrong = await api.raw('POST', '/room', {
      headers: { ...python, ...json },
      authorization: 'Bearer invalid',
      body: dumps(config()),
    });
    for (const [answer, status] of [
      [await post('/room', config({ maxPeers: '10', videoCodec: 'h264' })), 400],
      [await post('/room', config({ roomId: id })), 400],
      [wrong, 401],
      [await call('GET', '/room/invalid_id'), 404],
      [await call('DELETE', '/room/invalid_id'), 404],
      [await call('DELETE', `/room/${id}/peer/invalid_peer_id`), 404],
      [await call('DELETE', `/room/${id}/component/invalid_id`), 404],
      [await post(`/room/${id}/peer`, peer), 503],
    ] as const) {
      expect(answer.status).toEqual(status);
      expect(typeof answer.body.errors).toBe('string');
    }
    await call('DELETE', `/room/${id}`);
  });

  test('distinguish kinds of components by the keys of their properties, in responses and rooms', async () => {
    const { id } = (await post('/room', config({ videoCodec: 'h264' }))).body.data.room;
    const credentials = { accessKeyId: 'a', bucket: 'b', region: 'r', secretAccessKey: 's' };
    const hls = { lowLatency: false, persistent: false, s3: null, subscribeMode: 'auto', targetWindowDuration: null };
    const registrarCredentials = { address: '127.0.0.1:9', password: 'p', username: 'u' };
    const rtspDefaults = { keepAliveInterval: 15_000, pierceNat: true, reconnectDelay: 15_000, rtpPort: 20_000 };
    const kinds = new Map<string, string>();
    for (const [type, options] of [
      ['hls', hls],
      ['rtsp', { ...rtspDefaults, sourceUri: 'rtsp://127.0.0.1:2137/does/not/matter' }],
      ['file', { filePath: 'video.h264', framerate: null }],
      ['sip', { registrarCredentials }],
      ['recording', { credentials, pathPrefix: null, subscribeMode: 'manual' }],
    ] as const) {
      const answer = await post(`/room/${id}/component`, { options, type });
      // node-av is an optional dependency; without it these kinds are disabled.
      if (answer.status === 400 && /not installed|type rtsp are disabled/.test(answer.text)) continue;
      expect([type, answer.status, classOf(answer.body.data), answer.body.data.tracks]).toEqual([type, 201, type, []]);
      kinds.set(answer.body.data.id, type);
    }
    const { components } = (await call('GET', `/room/${id}`)).body.data;
    for (const component of components) expect(classOf(component)).toBe(kinds.get(component.id) ?? 'gone');
    const recording = [...kinds].find(([, kind]) => kind === 'recording')?.[0];
    const subscribed = await post(`/room/${id}/component/${recording}/subscribe`, { origins: ['peer-id'] });
    expect(subscribed.status).toBe(201);
    expect(subscribed.text).toBe('Successfully subscribed for tracks');
    await call('DELETE', `/room/${id}`);
  });

  test('the SDKs read a peer, its token and its address, and the health report', async () => {
    const { id } = (await post('/room', config())).body.data.room;
    const { body } = await post(`/room/${id}/peer`, { options: { enableSimulcast: true }, type: 'webrtc' });
    expect(Object.keys(body.data).toSorted()).toEqual([
      'peer',
      'peer_websocket_url',
      'token',
      // Bloom's own keys: the generated models set unknown keys aside.
      'whep_url',
      'whip_url',
    ]);
    expect((await call('GET', `/room/${id}`)).body.data.peers).toEqual([body.data.peer]);
    expect((await call('DELETE', `/room/${id}/peer/${body.data.peer.id}`)).status).toBe(204);
    const { data } = (await call('GET', '/health')).body;
    expect(data).toMatchObject({
      status: 'UP',
      distribution: { enabled: false, nodeStatus: 'DOWN', nodesInCluster: 0 },
    });
    expect(isInt(data.uptime)).toBe(true);
    expect(isText(data.version)).toBe(true);
    expect(isText(data.gitCommit)).toBe(true);
    await call('DELETE', `/room/${id}`);
  });

  test('authenticate, subscribe to both kinds of events in turn, and read the next frame as the answer', async () => {
    // The websockets library offers compression and sends no Origin.
    const socket = new WebSocket(`${node.url.replace('http', 'ws')}/socket/server/websocket`, {
      perMessageDeflate: true,
    });
    const frames: Buffer[] = [];
    let wake: () => void = () => undefined;
    socket.on('message', (data: Buffer) => {
      frames.push(data);
      wake();
    });
    const next = async (): Promise<string> => {
      while (frames.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return frames.shift()?.toString('hex') ?? '';
    };
    await once(socket, 'open');
    socket.send(Buffer.from('3a0d0a0b646576656c6f706d656e74', 'hex'));
    expect(await next()).toBe('3200');
    socket.send(Buffer.from('42020801', 'hex'));
    expect(await next()).toBe('4a020801');
    socket.send(Buffer.from('42020802', 'hex'));
    expect(await next()).toBe('4a020802');

    const { id } = (await post('/room', config({ roomId: 'seen' }))).body.data.room;
    await call('DELETE', `/room/${id}`);
    const events = [await next(), await next(), await next()];
    // RoomCreated and RoomDeleted with the id, in this order; a metrics report may come at any time.
    expect(events.filter((event) => !event.startsWith('62')).slice(0, 2)).toEqual([
      '52060a047365656e',
      '5a060a047365656e',
    ]);
    socket.close();
  });
});

describe('the JavaScript SDKs and the dashboard', () => {
  test('the SDKs do the same through axios, with unset fields left out', async () => {
    const call = (method: string, path: string, body?: unknown) =>
      api.with({ headers: { ...axios, ...(body === undefined ? {} : json) } }).call(method, path, body);
    const { status, body } = await call('POST', '/room', { maxPeers: 5 });
    const { room, fishjam_address: address } = body.data;
    expect(status).toBe(201);
    expect(room.config.maxPeers).toBe(5);
    expect(address).toBe(`127.0.0.1:${node.port}`);
    expect((await call('POST', `/room/${room.id}/peer`, { type: 'webrtc', options: {} })).status).toBe(201);
    expect(
      (await call('POST', `/room/${room.id}/component`, { type: 'file', options: { filePath: 'video.h264' } })).body
        .data,
    ).toMatchObject({ type: 'file', properties: { filePath: 'video.h264', framerate: 30 } });
    expect((await call('DELETE', `/room/${room.id}`)).status).toBe(204);
  });

  test('the SDKs send from a page of another origin a preflight without a token, then the call', async () => {
    const origin = { origin: 'https://dashboard.example', 'sec-fetch-mode': 'cors' };
    for (const [method, path] of [
      ['GET', '/room'],
      ['POST', '/room'],
      ['DELETE', '/room/none'],
    ] as const) {
      const asked = {
        'access-control-request-method': method,
        'access-control-request-headers': 'authorization,content-type',
      };
      const preflight = await api.raw('OPTIONS', path, { authorization: null, headers: { ...origin, ...asked } });
      const allowed = (name: string): string => String(preflight.headers[`access-control-allow-${name}`]).toLowerCase();
      expect(preflight.status).toBe(204);
      expect(allowed('origin')).toBe('*');
      expect(allowed('methods')).toContain(method.toLowerCase());
      for (const header of ['authorization', 'content-type']) expect(allowed('headers')).toContain(header);
      const answer = await api.raw(method, path, { headers: { ...origin, ...axios } });
      expect(answer.headers['access-control-allow-origin']).toBe('*');
      expect(answer.status < 500).toBe(true);
    }
  });
});
