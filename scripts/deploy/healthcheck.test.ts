/** Tests deploy/docker/healthcheck.mjs, the health check of the container image. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { root } from '../setup.mjs';

const node = createServer((request, response) => {
  const token = Buffer.from(request.headers.authorization ?? '', 'latin1').toString();
  response.statusCode = request.url === '/health' && ['Bearer right', 'Bearer 42 €'].includes(token) ? 200 : 401;
  response.end();
});
beforeAll(async () => {
  await once(node.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  node.close();
});

async function check(env: Record<string, string>): Promise<unknown> {
  const port = String((node.address() as AddressInfo).port);
  const child = spawn(process.execPath, [join(root, 'deploy', 'docker', 'healthcheck.mjs')], {
    env: { JF_PORT: port, ...env },
  });
  const [code] = await once(child, 'exit');
  return code;
}

test.each([
  [0, { JF_SERVER_API_TOKEN: 'right' }],
  [0, { FJ_SERVER_API_TOKEN: 'right', JF_IP: '0.0.0.0' }],
  [0, { JF_SERVER_API_TOKEN: '42 €' }],
  [0, { JF_SERVER_API_TOKEN: 'right', FJ_SSL_KEY_PATH: '' }],
  [1, { JF_SERVER_API_TOKEN: 'wrong' }],
  // The check uses TLS for a node that is set up for it, but this server speaks plain HTTP.
  [1, { JF_SERVER_API_TOKEN: 'right', JF_SSL_KEY_PATH: 'key.pem' }],
])('exits with %s for %j', async (code, env) => {
  expect(await check(env)).toBe(code);
});
