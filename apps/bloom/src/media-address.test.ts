import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, expect, test } from '@jest/globals';
import { loadConfig, type Settings } from '@bloom/config';
import { silentLog } from '@bloom/log';
import { withMediaAddress } from './media-address.js';

const servers: Socket[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

function settings(env: Record<string, string>): Settings {
  const machine = { cwd: '/', hostname: 'host', cores: 1, randomBytes: (size: number) => Buffer.alloc(size) };
  return loadConfig({ NODE_ENV: 'test', ...env }, machine).settings;
}

async function address(env: Record<string, string>): Promise<string | undefined> {
  return (await withMediaAddress(settings(env), silentLog)).webrtc?.turnIp;
}

function answerTo(request: Buffer, seen: number[]): Buffer {
  const answer = Buffer.from('0101000c2112a442000000000000000000000000002000080001000000000000', 'hex');
  request.copy(answer, 8, 8, 20);
  seen.forEach((byte, i) => (answer[28 + i] = byte ^ (answer[4 + i] as number)));

  return answer;
}

/** A STUN server that ignores the first request and sees 203.0.113.9 (RFC 8489 section 14.2). */
async function stunServer(): Promise<number> {
  const [server, liar] = [createSocket('udp4'), createSocket('udp4')];
  servers.push(server, liar);
  liar.bind(0, '127.0.0.1');
  let requests = 0;
  server.on('message', (request, { port, address: from }) => {
    requests += 1;
    if (requests === 1) {
      server.send('garbage', port, from);
      // An attacker knows the request and answers first.
      liar.send(answerTo(request, [198, 51, 100, 66]), port, from);
      return;
    }
    server.send(answerTo(request, [203, 0, 113, 9]), port, from);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('leaves a literal address unchanged', async () => {
  expect(await address({ JF_WEBRTC_TURN_IP: '203.0.113.7' })).toBe('203.0.113.7');
  expect(await address({ JF_WEBRTC_USED: 'false', JF_WEBRTC_TURN_IP: 'auto' })).toBeUndefined();
});

test('resolves a host name', async () => {
  expect(await address({ JF_WEBRTC_TURN_IP: 'localhost' })).toBe('127.0.0.1');
  await expect(address({ JF_WEBRTC_TURN_IP: 'nowhere.invalid' })).rejects.toMatchObject({
    variable: 'JF_WEBRTC_TURN_IP',
    message: 'the host name "nowhere.invalid" of JF_WEBRTC_TURN_IP has no IPv4 address',
  });
});

test('`auto` becomes the address that the STUN server sees', async () => {
  const port = await stunServer();
  expect(await address({ JF_WEBRTC_TURN_IP: 'auto', JF_STUN_SERVER: `localhost:${port}` })).toBe('203.0.113.9');
});

test('fails the start when a STUN server returns no address', async () => {
  await expect(address({ JF_WEBRTC_TURN_IP: 'auto', JF_STUN_SERVER: 'nowhere.invalid' })).rejects.toMatchObject({
    variable: 'JF_STUN_SERVER',
  });
});

test('announces the addresses of the machine in the development profile too, if it has a route to others', async () => {
  const { webrtc } = await withMediaAddress(settings({ NODE_ENV: 'development' }), silentLog);
  const own = new Set(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address: one }) => one)));
  expect(webrtc?.turnIp).toBe('127.0.0.1');
  expect([...(webrtc?.more ?? [])].filter((one) => !own.has(one))).toEqual([]);
  expect([...(webrtc?.more ?? [])].filter((one) => one.startsWith('127.') || one === '::1')).toEqual([]);
});

test.each([
  ['JF_WEBRTC_TURN_IP', { NODE_ENV: 'development', JF_WEBRTC_TURN_IP: '127.0.0.1' }],
  ['JF_WEBRTC_TURN_LISTEN_IP', { NODE_ENV: 'development', JF_WEBRTC_TURN_LISTEN_IP: '127.0.0.1' }],
  ['the test profile', { NODE_ENV: 'test' }],
])('%s keeps media to the addresses that are set', async (_what, env) => {
  expect((await withMediaAddress(settings(env), silentLog)).webrtc?.more).toEqual([]);
});
