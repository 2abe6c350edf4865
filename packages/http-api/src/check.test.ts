import type { PathCheck } from '@bloom/rooms';
import { afterEach, describe, expect, test } from '@jest/globals';
import { TestApi } from './testing/api.js';

const CHECK: PathCheck = {
  endpoint: {
    address: '203.0.113.7',
    secondAddress: '2001:db8::7',
    moreAddresses: ['192.0.2.9'],
    port: 50_000,
    tcpPort: 49_999,
    tls: { host: 'turn.example.com', port: 443 },
    fingerprint: { algorithm: 'sha-256', value: 'AA' },
  },
  relay: { username: '1795262400:check-1', password: 'c2VjcmV0' },
  expiresAt: 1_795_262_430_000,
};

let api: TestApi;
afterEach(() => api.close());

const start = async (open: (roomId?: string) => Promise<PathCheck | undefined> = async () => CHECK): Promise<void> => {
  api = await TestApi.open({ checks: { open } });
};
const check = (token: string | null) =>
  api.call('POST', '/check', { authorization: token === null ? null : `Bearer ${token}` });

describe('POST /check', () => {
  test('gives operators every way to the node, as servers for a browser', async () => {
    await start();
    const { status, body } = await api.call('POST', '/check');
    expect(status).toBe(201);
    expect(body.data.expires_at).toBe(CHECK.expiresAt);
    expect(
      body.data.relays.map(({ transport, url }: { transport: string; url: string }) => `${transport} ${url}`),
    ).toEqual([
      'udp turn:203.0.113.7:50000?transport=udp',
      'udp turn:[2001:db8::7]:50000?transport=udp',
      'udp turn:192.0.2.9:50000?transport=udp',
      'tcp turn:203.0.113.7:49999?transport=tcp',
      'tcp turn:[2001:db8::7]:49999?transport=tcp',
      'tls turns:turn.example.com:443?transport=tcp',
    ]);
    expect(body.data.relays[0]).toMatchObject({ username: CHECK.relay.username, credential: CHECK.relay.password });
  });

  test('accepts an invitation, and the token of a peer', async () => {
    await start();
    const { body } = await api.call('POST', '/room');
    const { id } = body.data.room;
    const invitation = (await api.call('POST', `/room/${id}/invitation`)).body.data.token;
    const peer = (await api.call('POST', `/room/${id}/peer`, { body: { type: 'webrtc' } })).body.data.token;
    for (const token of [invitation, peer]) expect((await check(token)).status).toBe(201);
  });

  test('counts the checks of guests and peers for their room, and no others', async () => {
    const rooms: (string | undefined)[] = [];
    await start(async (roomId) => {
      rooms.push(roomId);
      return CHECK;
    });
    const { id } = (await api.call('POST', '/room')).body.data.room;
    await check((await api.call('POST', `/room/${id}/invitation`)).body.data.token);
    await check((await api.call('POST', `/room/${id}/peer`, { body: { type: 'webrtc' } })).body.data.token);
    await api.call('POST', '/check');
    expect(rooms).toEqual([id, id, undefined]);
  });

  test.each([null, '', 'wrong', 'a.b', `${Buffer.from('["a","b",1]').toString('base64url')}.eHh4`])(
    'refuses a stranger with %j',
    async (token) => {
      await start();
      expect((await check(token)).status).toBe(401);
    },
  );

  test('refuses an invitation that has expired', async () => {
    await start();
    const { token } = api.passes.issueInvitation({ roomId: 'hall', createdAt: 1 }, { uses: 0 }, 60);
    api.clock.advance(60_000);
    expect((await check(token)).status).toBe(401);
  });

  test('limits each token without affecting others', async () => {
    await start();
    const tokenOf = (): string => api.passes.issueInvitation({ roomId: 'hall', createdAt: 1 }, { uses: 0 }).token;
    const [busy, other] = [tokenOf(), tokenOf()];
    const statuses: number[] = [];
    for (let i = 0; i < 12; i += 1) statuses.push((await check(busy)).status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(10);
    expect(statuses.at(-1)).toBe(429);
    expect((await check(other)).status).toBe(201);
    api.clock.advance(6_000);
    expect((await check(busy)).status).toBe(201);
  });

  test('says when too many are in progress, and when no media worker is up', async () => {
    await start(async () => undefined);
    expect((await api.call('POST', '/check')).body.errors).toMatch(/^Too many checks are under way/);
    await api.close();
    await start(() => Promise.reject(new Error('no worker')));
    const { status, body } = await api.call('POST', '/check');
    expect(status).toBe(503);
    expect(body.errors).toBe('No media worker is up');
  });
});
