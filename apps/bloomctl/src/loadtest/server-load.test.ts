import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { Server, serverUrl } from '../outside/server.js';
import { ServerLoads } from './server-load.js';

let server: ReturnType<typeof createServer> | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Serves these texts by path, and nothing else. */
const loads = (answers: Readonly<Record<string, string>>): Promise<ServerLoads> =>
  loadsOf(({ url = '' }, response) => {
    const text = answers[url];
    response.writeHead(text === undefined ? 503 : 200).end(text ?? '{"errors":"off"}');
  });

async function loadsOf(listener: RequestListener): Promise<ServerLoads> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = { token: 'development', metricsUrl: `${url}/metrics`, timeoutMs: 2_000 };
  return new ServerLoads({ server: new Server(serverUrl(url), 2_000), ...options });
}

const METRICS = `# TYPE bloom_media_worker_busy_ratio gauge
bloom_media_worker_busy_ratio{worker="1"} 0.25
bloom_media_worker_busy_ratio{worker="2"} 0.75
process_resident_memory_bytes 1.5e8
nodejs_gc_duration_seconds_sum{kind="minor"} 2
nodejs_gc_duration_seconds_sum{kind="major"} 1
nodejs_gc_duration_seconds_sum_of_something_else 99
`;

test('counts the busiest node and the busiest worker', async () => {
  const nodes = [
    { cpu: 0.5, loopP99Ms: 30 },
    { cpu: 1.5, loopP99Ms: 11 },
  ];
  const load = await (await loads({ '/cluster': JSON.stringify({ data: { nodes } }), '/metrics': METRICS })).read();
  expect(load).toEqual({ cpu: 1.5, loopP99Ms: 30, workerBusy: 0.75, memoryBytes: 1.5e8, gcShare: null });
});

test('has no figures of a server that reports none', async () => {
  const load = await (await loads({})).read();
  expect(load).toEqual({ cpu: null, loopP99Ms: null, workerBusy: null, memoryBytes: null, gcShare: null });
});

test('measures garbage collection since the previous reading', async () => {
  const some = await loads({ '/metrics': METRICS });
  await some.read();
  expect((await some.read()).gcShare).toBe(0);
});

test('reads no more than the start of endless metrics', async () => {
  const some = await loadsOf(({ url }, response) => {
    if (url !== '/metrics') return void response.writeHead(503).end();
    response.write(METRICS);
    const write = (): void => {
      while (!response.destroyed && response.write('#'.repeat(65_536)));
    };
    response.on('drain', write);
    write();
  });
  expect((await some.read()).workerBusy).toBe(0.75);
});
