import { afterEach, expect, test } from '@jest/globals';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { reach } from './reachability.js';

let server: Server | undefined;
afterEach(() => void server?.close());

const options = { timeoutMs: 5_000, signal: new AbortController().signal };

test('reports the address of a port with a listener, and any other port as refused', async () => {
  server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server!.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  expect(await reach({ scheme: 'rtsp', host: '127.0.0.1', port }, options)).toEqual({ address: '127.0.0.1' });
  expect(await reach({ scheme: 'rtmp', host: 'camera.localhost', port }, options)).toEqual({ address: '127.0.0.1' });
  await new Promise((resolve) => server!.close(resolve));
  expect(await reach({ scheme: 'rtsp', host: '127.0.0.1', port }, options)).toEqual({ reason: 'Connection refused' });
});

test('gives an SRT source its next address at each attempt', async () => {
  const source = { scheme: 'srt', host: 'encoder.localhost', port: 1 } as const;
  const found = await Promise.all([0, 1, 2].map((attempt) => reach(source, { ...options, attempt })));
  expect(found).toEqual([{ address: '127.0.0.1' }, { address: '::1' }, { address: '127.0.0.1' }]);
});

test('looks up an SRT source without connecting', async () => {
  expect(await reach({ scheme: 'srt', host: 'encoder.localhost', port: 1 }, options)).toEqual({ address: '127.0.0.1' });
  expect(await reach({ scheme: 'srt', host: 'no..name', port: 1 }, options)).toEqual({
    reason: '"no..name" is not a host name',
  });
});
