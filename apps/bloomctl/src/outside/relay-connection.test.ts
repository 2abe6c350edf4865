import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { connectRelay } from './relay-connection.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function portOf(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const plain = (): Server => createServer((socket) => socket.on('error', () => undefined));

test('returns the connection time of a relay that listens', async () => {
  const port = await portOf(plain());
  expect(await connectRelay({ host: '127.0.0.1', port }, 'relay-tcp', 2_000)).toBeGreaterThan(0);
});

test('names the setting of a port where nothing listens', async () => {
  const server = plain();
  const port = await portOf(server);
  server.close();
  await once(server, 'close');
  await expect(connectRelay({ host: '127.0.0.1', port }, 'relay-tcp', 2_000)).rejects.toMatchObject({
    message: `Nothing listens at 127.0.0.1:${port}, which the server announces.`,
    fix: expect.stringContaining('JF_WEBRTC_TURN_TCP_PORT'),
  });
});

test('treats a relay that never answers the TLS handshake as behind a firewall', async () => {
  const port = await portOf(plain());
  await expect(connectRelay({ host: '127.0.0.1', port }, 'relay-tls', 200)).rejects.toMatchObject({
    fix: `Open TCP port ${port} in every firewall (JF_WEBRTC_TURN_TLS_PORT).`,
  });
});

test('names a certificate that no browser accepts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomctl-relay-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost ' +
    `-keyout ${key} -out ${cert}`;
  execFileSync('openssl', request.split(' '), { stdio: 'pipe' });
  const port = await portOf(createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }));
  rmSync(folder, { recursive: true, force: true });
  await expect(connectRelay({ host: '127.0.0.1', port }, 'relay-tls', 2_000)).rejects.toMatchObject({
    message: expect.stringMatching(/^No browser accepts the TLS connection to the relay at 127\.0\.0\.1:\d+: self/),
  });
});
