// The package in an environment like React Native with react-native-webrtc: JavaScript, timers, WebSocket and WebRTC,
// but no document, elements, storage, URL or crypto.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createContext, runInContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import { build } from 'esbuild';
import { WebSocket, WebSocketServer } from 'ws';
import type * as Client from './index.js';

/** Lacks `getConfiguration`, like that of react-native-webrtc. */
class PeerConnection extends EventTarget {
  close(): void {}
}

const uncaught: string[] = [];

async function load(): Promise<typeof Client> {
  const entry = new URL('index.ts', import.meta.url).pathname;
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'bloom',
  });
  const world = createContext({
    // React Native shows an error in a timer to the developer.
    setTimeout: (callback: () => void, ms?: number) =>
      setTimeout(() => {
        try {
          callback();
        } catch (error) {
          uncaught.push((error as Error).message);
        }
      }, ms),
    clearTimeout,
    setInterval,
    clearInterval,
    console,
    WebSocket,
    TextEncoder,
    RTCPeerConnection: PeerConnection,
    navigator: { product: 'ReactNative' },
  });
  runInContext(outputFiles[0]?.text ?? '', world);
  return runInContext('bloom', world) as typeof Client;
}

test('loads and joins a room without a browser, and survives an error in its page', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const paths: (string | undefined)[] = [];
  server.on('connection', (socket, { url }) => {
    paths.push(url);
    socket.on('message', (data: Buffer) => {
      const message = decodePeerMessage(data);
      if (message.type === 'authRequest') return socket.send(encodePeerMessage({ type: 'authenticated' }));
      const otherEndpoints = [{ id: 'bob', type: 'webrtc', metadata: { name: 'Bjørn 🌸' }, tracks: {} }];
      const connected = JSON.stringify({ type: 'connected', data: { id: 'ann', otherEndpoints } });
      return socket.send(encodePeerMessage({ type: 'mediaEvent', data: connected }));
    });
  });
  const { port } = server.address() as AddressInfo;
  const { RoomClient } = await load();
  const client = new RoomClient();
  const states: string[] = [];
  client.on('changed', () => {
    throw new Error('a mistake of the application');
  });
  client.on('changed', () => states.push(client.state));
  try {
    await client.connect({ url: `127.0.0.1:${port}`, token: 'secret' });
    expect(client.id).toBe('ann');
    expect(client.peers.map(({ metadata }) => metadata)).toEqual([{ name: 'Bjørn 🌸' }]);
    expect(states.at(-1)).toBe('connected');
    expect(uncaught).toContain('a mistake of the application');
    expect(paths).toEqual(['/socket/peer/websocket']);
  } finally {
    client.leave();
    for (const socket of server.clients) socket.terminate();
    server.close();
    await once(server, 'close');
  }
});
