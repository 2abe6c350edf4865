import { afterEach, expect, test } from '@jest/globals';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tcpAddress, whyUnreachable } from './reachability.js';

let server: Server | undefined;
afterEach(() => void server?.close());

test('returns the address of a source unless it has a host name or uses UDP', () => {
  expect(tcpAddress('rtsp://user:pa%20ss@10.0.0.7/live?x=1')).toEqual({ host: '10.0.0.7', port: 554 });
  expect(tcpAddress('rtsps://[fd00::7]:8322/')).toEqual({ host: 'fd00::7', port: 8_322 });
  expect(tcpAddress('rtmp://10.0.0.7/app')).toEqual({ host: '10.0.0.7', port: 1_935 });
  expect(tcpAddress('rtsp://camera.example/')).toBeUndefined();
  expect(tcpAddress('srt://10.0.0.7:9000')).toBeUndefined();
  expect(tcpAddress('nonsense')).toBeUndefined();
});

test('reports a port with a listener as reachable, and any other as refused', async () => {
  server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server!.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const options = { timeoutMs: 5_000, signal: new AbortController().signal };
  expect(await whyUnreachable({ host: '127.0.0.1', port }, options)).toBeUndefined();
  await new Promise((resolve) => server!.close(resolve));
  expect(await whyUnreachable({ host: '127.0.0.1', port }, options)).toBe('Connection refused');
});
