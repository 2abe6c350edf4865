import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { createLogger } from '@bloom/log';
import { Passes } from '@bloom/rooms';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestApi } from './testing/api.js';

let lines: string[];
let api: TestApi;

beforeEach(async () => {
  lines = [];
  api = await TestApi.open({ log: createLogger({ level: 'debug', sink: (line) => lines.push(line) }) });
  await api.call('POST', '/room', { body: { roomId: 'kitchen', maxPeers: 3 } });
});

afterEach(() => api.close());

const invite = (body: unknown = {}) => api.call('POST', '/room/kitchen/invitation', { body });
const tokenOf = async (body: unknown = {}): Promise<string> => (await invite(body)).body.data.token;
const accept = (token: unknown, name?: unknown) =>
  api.call('POST', '/invitation', { body: { token, name }, authorization: null });

/** Sends a request from another address of loopback. */
function acceptFrom(localAddress: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const options = { host: '127.0.0.1', port: api.port, localAddress, method: 'POST', path: '/invitation', headers };
    const outgoing = httpRequest(options, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    outgoing.on('error', reject);
    outgoing.end(JSON.stringify({ token }));
  });
}

describe('POST /room/:id/invitation', () => {
  test('returns a token and its expiry, and no address without a page for guests', async () => {
    const answer = await invite({ ttl: 60 });
    expect(answer.status).toBe(201);
    expect(answer.body.data).toEqual({
      token: expect.any(String),
      url: null,
      expires_at: Math.floor(api.clock.wall()) + 60_000,
    });
  });

  test('returns the address of the page for guests, with the token where no server logs it', async () => {
    await api.close();
    api = await TestApi.open({ guestPage: true });
    await api.call('POST', '/room', { body: { roomId: 'kitchen' } });
    const { token, url } = (await invite()).body.data;
    expect(url).toBe(`http://${api.rooms.address}/#invitation=${token}`);
    expect(new URL(url).hash).toContain(token);
  });

  test.each([
    [{ ttl: 0 }, 'Expected ttl to be a number of seconds from 1 to 2592000, got: 0'],
    [{ uses: -1 }, 'Expected uses to be a number from 0 to 1000000, got: -1'],
    [{ uses: '2' }, 'Expected uses to be a number from 0 to 1000000, got: 2'],
    [{ name: '' }, 'Expected name to have 1 to 100 characters'],
    [{ name: 'x'.repeat(101) }, 'Expected name to have 1 to 100 characters'],
    [{ name: 7 }, 'Expected name to have 1 to 100 characters'],
    [
      { permissions: { publish: ['screen'] } },
      'Expected publish to be true, false or an array of audio, video and data',
    ],
  ])('refuses %j', async (body, errors) => {
    const answer = await invite(body);
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ errors });
  });

  test('requires the API token and a room', async () => {
    const path = '/room/kitchen/invitation';
    expect((await api.call('POST', path, { authorization: null })).status).toBe(401);
    expect((await api.call('POST', '/room/attic/invitation')).status).toBe(404);
  });
});

describe('POST /invitation', () => {
  test("adds a peer as a backend's call does, with the guest's name", async () => {
    const answer = await accept(await tokenOf(), 'Bob');
    expect(answer.status).toBe(201);
    expect(Object.keys(answer.body.data)).toEqual(['peer', 'token', 'peer_websocket_url', 'whip_url', 'whep_url']);
    expect(answer.body.data.peer.metadata).toEqual({ peer: null, server: { name: 'Bob' } });
    expect(answer.body.data.peer).not.toHaveProperty('permissions');
  });

  test('prefers the name in the invitation, and accepts guests without one', async () => {
    const named = await accept(await tokenOf({ name: 'Ann' }), 'The boss');
    expect(named.body.data.peer.metadata.server).toEqual({ name: 'Ann' });
    expect((await accept(await tokenOf())).body.data.peer.metadata.server).toEqual({ name: 'Guest' });
  });

  test("grants the invitation's permissions", async () => {
    const { body } = await accept(await tokenOf({ permissions: { publish: ['audio'], subscribe: null } }));
    expect(body.data.peer.permissions).toEqual({ publish: ['audio'], subscribe: true, metadata: true });
  });

  test('answers 410 once the invitation has expired or is used up', async () => {
    const once = await tokenOf({ uses: 1 });
    expect((await accept(once)).status).toBe(201);
    const used = await accept(once);
    expect(used.status).toBe(410);
    expect(used.body).toEqual({ errors: 'The invitation has been used up' });
    const short = await tokenOf({ ttl: 1 });
    api.clock.advance(1_000);
    const expired = await accept(short);
    expect(expired.status).toBe(410);
    expect(expired.body).toEqual({ errors: 'The invitation has expired' });
  });

  test('answers 503 for a full room without using up the invitation', async () => {
    const token = await tokenOf({ uses: 4 });
    for (let i = 0; i < 3; i += 1) await accept(token);
    const full = await accept(token);
    expect(full.status).toBe(503);
    expect(full.body).toEqual({ errors: 'Reached peer limit in room kitchen' });
    await api.call('PATCH', '/room/kitchen', { body: { maxPeers: null } });
    expect((await accept(token)).status).toBe(201);
  });

  test('answers 404 once the room has ended, even if another room now has its id', async () => {
    const token = await tokenOf();
    await api.call('DELETE', '/room/kitchen');
    expect((await accept(token)).body).toEqual({ errors: 'Room kitchen does not exist' });
    await api.call('POST', '/room', { body: { roomId: 'kitchen' } });
    expect((await accept(token)).status).toBe(404);
  });

  test.each([{}, { token: 1 }, { token: null }, { token: 'x'.repeat(4_097) }, { token: 'x', name: '' }])(
    'answers 400 for the body %j',
    async (body) => {
      expect((await api.call('POST', '/invitation', { body, authorization: null })).status).toBe(400);
    },
  );
});

describe('a stranger', () => {
  test('limits a stranger to ten wrong tokens a minute without keeping out anybody with a right one', async () => {
    const right = await tokenOf();
    for (let i = 0; i < 10; i += 1) expect((await accept(`wrong ${i}`)).status).toBe(401);
    const further = await accept('wrong');
    expect(further.status).toBe(429);
    expect(further.body).toEqual({ errors: 'Too many wrong tokens; try again in a minute' });
    expect((await accept(right)).status).toBe(201);
    expect(await acceptFrom('127.0.0.2', 'wrong')).toBe(401);
    api.clock.advance(6_000);
    expect((await accept('wrong')).status).toBe(401);
    expect((await accept('wrong')).status).toBe(429);
  });

  test('limits one invitation to sixty guests a minute', async () => {
    const [token, other] = [await tokenOf(), await tokenOf()];
    for (let i = 0; i < 60; i += 1) expect([201, 503]).toContain((await accept(token)).status);
    expect((await accept(token)).status).toBe(429);
    expect((await accept(other)).status).toBe(503);
    api.clock.advance(1_000);
    expect((await accept(token)).status).toBe(503);
  });

  test('gives no seat for a forged invitation or the token of a viewer or a peer', async () => {
    const [payload = '', signature = ''] = (await tokenOf()).split('.');
    const claim = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const forged = Buffer.from(JSON.stringify({ ...claim, uses: 0, roomId: 'attic' })).toString('base64url');
    const viewer = (await api.call('POST', '/room/kitchen/viewer')).body.data.token as string;
    const peer = (await api.call('POST', '/room/kitchen/peer', { body: { type: 'webrtc' } })).body.data.token as string;
    const foreign = new Passes('another', api.clock).issueInvitation({ roomId: 'kitchen', createdAt: 1 }, { uses: 0 });
    for (const token of [`${forged}.${signature}`, `${payload}.`, viewer, peer, foreign.token]) {
      expect((await accept(token)).status).toBe(401);
    }
  });

  test("limits a stranger's body to 16 KiB, compressed or not", async () => {
    const big = JSON.stringify({ token: 'x', name: 'y'.repeat(20_000) });
    const headers = { 'content-type': 'application/json', authorization: [] };
    expect((await api.raw('POST', '/invitation', { headers, body: big })).status).toBe(413);
    const zipped = { ...headers, 'content-encoding': 'gzip' };
    expect((await api.raw('POST', '/invitation', { headers: zipped, body: gzipSync(big) })).status).toBe(413);
  });

  test('logs a stranger at most once a minute, without the token', async () => {
    const token = await tokenOf();
    await accept(token);
    for (let i = 0; i < 12; i += 1) await accept(`${token}${i}`);
    const refusals = lines.filter((line) => line.includes('invitation.refused'));
    expect(refusals).toHaveLength(2);
    expect(lines.join()).not.toContain(token.slice(0, 20));
  });
});
