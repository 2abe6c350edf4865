/** The C floor that no SFU can undercut: OpenSSL and one send per packet, nothing else. */
import { execFile, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Load } from './measure.js';
import { address } from './private-network.js';
import { buildNative } from './sink.js';

export const floorName = 'C floor (AES-GCM)';

export function floorUnavailable(): string | undefined {
  return existsSync('/usr/include/openssl/evp.h')
    ? undefined
    : 'the OpenSSL headers are missing: sudo apt-get install libssl-dev';
}

/** Returns microseconds of CPU time per packet, sent to the same polling sink that the servers use. */
export async function measureFloor(load: Load): Promise<number> {
  const first = 42_000;
  const sockets = [];
  for (let i = 0; i < load.subscribers; i += 1) {
    const socket = createSocket('udp4');
    await new Promise<void>((done) => socket.bind(first + i, address, done));
    sockets.push(socket);
  }
  const handles = sockets.map((socket) => {
    const handle = (socket as unknown as { _handle: { fd: number; recvStop(): void } })._handle;
    handle.recvStop();
    return handle.fd;
  });
  const sink = spawn(buildNative('sink'), ['3', String(handles.length), '1000000'], {
    stdio: ['pipe', 'ignore', 'inherit', ...handles],
  });
  const program = buildNative('floor', '-Wno-deprecated-declarations', '-lcrypto');
  const args = ['gcm', load.subscribers, load.rate, load.bytes, (load.windows * load.windowMs) / 1000, address, first];
  const { stdout } = await promisify(execFile)(program, args.map(String));
  const ended = new Promise((done) => sink.once('exit', done));
  sink.stdin?.end();
  await ended;
  for (const socket of sockets) socket.close();
  return Number(stdout);
}
