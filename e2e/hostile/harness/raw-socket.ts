// Sends websocket bytes without a library, which would refuse to send most of them.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const PEER_PATH = '/socket/peer/websocket';
export const SERVER_PATH = '/socket/server/websocket';

export const Opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9 } as const;

export interface FrameOptions {
  readonly opcode: number;
  readonly payload?: Uint8Array;
  /** The length in the header; by default that of the payload. */
  readonly announced?: number | bigint;
  readonly final?: boolean;
  readonly masked?: boolean;
  /** RSV bits. */
  readonly reserved?: number;
}

/** Returns a frame (RFC 6455, section 5.2), masked with zeros. */
export function frame(options: FrameOptions): Buffer {
  const { opcode, payload = new Uint8Array(0), final = true, masked = true, reserved = 0 } = options;
  const announced = BigInt(options.announced ?? payload.length);
  const first = (final ? 0x80 : 0) | (reserved << 4) | opcode;
  const mask = masked ? 0x80 : 0;
  let header: Buffer;
  if (announced < 126n) header = Buffer.from([first, mask | Number(announced)]);
  else if (announced < 65_536n)
    header = Buffer.from([first, mask | 126, Number(announced) >> 8, Number(announced) & 255]);
  else {
    header = Buffer.alloc(10);
    header[0] = first;
    header[1] = mask | 127;
    header.writeBigUInt64BE(announced, 2);
  }
  return Buffer.concat([header, Buffer.alloc(masked ? 4 : 0), payload]);
}

export interface RawSocketOptions {
  /** `host:port` */
  readonly host: string;
  readonly path?: string;
  /** Local address; a stranger has a different one. */
  readonly from?: string;
}

/** Connects and sends nothing. */
export async function rawConnection({ host, from = '127.0.0.2' }: RawSocketOptions): Promise<Socket> {
  const [name = '', port = ''] = host.split(':');
  const socket = connect({ host: name, port: Number(port), localAddress: from });
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** Requests an upgrade to a websocket, and neither awaits nor reads the response. */
export async function rawWebsocket(options: RawSocketOptions): Promise<Socket> {
  const socket = await rawConnection(options);
  socket.write(
    `GET ${options.path ?? PEER_PATH} HTTP/1.1\r\nHost: ${options.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  );
  return socket;
}

/** Opens many sockets, `together` at a time. */
export async function many<T>(count: number, open: (at: number) => Promise<T>, together = 50): Promise<T[]> {
  const opened: T[] = [];
  while (opened.length < count) {
    const size = Math.min(together, count - opened.length);
    opened.push(...(await Promise.all(Array.from({ length: size }, (_, at) => open(opened.length + at)))));
  }
  return opened;
}

/** Writes until the time is up, no faster than the other end reads. */
export async function pour(
  socket: Socket,
  chunk: Buffer,
  { durationMs, bytesPerSecond }: { durationMs: number; bytesPerSecond: number },
): Promise<number> {
  const from = performance.now();
  let written = 0;
  while (performance.now() - from < durationMs && socket.writable) {
    const due = ((performance.now() - from) / 1000) * bytesPerSecond;
    if (written < due && socket.writableLength < 1024 * 1024) {
      socket.write(chunk);
      written += chunk.length;
    } else {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
  return written;
}
