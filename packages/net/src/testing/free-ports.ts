// Free ports for nodes, which bind fixed numbers. They lie below the system's ephemeral range, so that no connection
// takes one between choice and bind, and a process never chooses the same port twice.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Port range for each protocol: 10,000 to 29,999. */
const FIRST = 10_000;
const COUNT = 20_000;
/** Processes that run in parallel start at different ports. */
const START = (process.pid * 997) % COUNT;

let tcpPorts = 0;
let udpPorts = 0;

const tcpIsFree = (port: number): Promise<boolean> => binds(createServer().listen(port));
const udpIsFree = (port: number): Promise<boolean> => binds(createSocket('udp4').bind(port));

async function binds(socket: ReturnType<typeof createServer> | ReturnType<typeof createSocket>): Promise<boolean> {
  try {
    await once(socket, 'listening');
  } catch {
    return false;
  }
  const closed = once(socket, 'close');
  socket.close();
  await closed;
  return true;
}

export async function freeTcpPort(): Promise<number> {
  while (tcpPorts < COUNT) {
    const port = FIRST + ((START + tcpPorts++) % COUNT);
    if (await tcpIsFree(port)) return port;
  }
  throw new Error(`no free TCP port from ${FIRST} to ${FIRST + COUNT - 1}`);
}

/** Returns the first and last of `count` consecutive free UDP ports. */
export async function freeUdpRange(count: number): Promise<{ first: number; last: number }> {
  for (; udpPorts < COUNT; udpPorts += count) {
    const first = FIRST + ((START + udpPorts) % (COUNT - count));
    const ports = Array.from({ length: count }, (_, i) => first + i);
    const free = await Promise.all(ports.map(udpIsFree));
    if (!free.every(Boolean)) continue;
    udpPorts += count;
    return { first, last: first + count - 1 };
  }
  throw new Error(`no ${count} free UDP ports in a row from ${FIRST} to ${FIRST + COUNT - 1}`);
}
