// Ports that were free a moment ago. Nodes bind fixed numbers, so a test must choose them.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

export async function freeTcpPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function udpIsFree(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind(port);
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}

/** First of `count` free UDP ports in a row, away from the range that programs get by default. */
export async function freeUdpRange(count: number): Promise<{ first: number; last: number }> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const first = 20_000 + Math.floor(Math.random() * 10_000);
    const ports = Array.from({ length: count }, (_, i) => first + i);
    const free = await Promise.all(ports.map(udpIsFree));
    if (free.every(Boolean)) return { first, last: first + count - 1 };
  }
  throw new Error(`no ${count} free UDP ports in a row after 50 attempts`);
}
