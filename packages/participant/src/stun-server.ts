import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const XOR_MAPPED_ADDRESS = 0x0020;
const HEADER_BYTES = 20;
const IPV4 = 1;

/** Returns the answer to a binding request (RFC 8489, sections 5 and 14.2), or undefined for anything else. */
function answer(request: Buffer, address: string, port: number): Buffer | undefined {
  if (request.length < HEADER_BYTES || request.readUInt16BE(0) !== BINDING_REQUEST) return undefined;
  const cookie = request.subarray(4, 8);
  const reply = Buffer.alloc(HEADER_BYTES + 12);
  reply.writeUInt16BE(BINDING_SUCCESS, 0);
  reply.writeUInt16BE(12, 2);
  request.copy(reply, 4, 4, HEADER_BYTES);
  reply.writeUInt16BE(XOR_MAPPED_ADDRESS, 20);
  reply.writeUInt16BE(8, 22);
  reply.writeUInt8(IPV4, 25);
  reply.writeUInt16BE(port ^ cookie.readUInt16BE(0), 26);
  for (const [index, byte] of address.split('.').entries())
    reply.writeUInt8(Number(byte) ^ (cookie[index] ?? 0), 28 + index);
  return reply;
}

/**
 * Starts a STUN server on the loopback interface, which runs as long as this process without keeping it alive. Returns
 * its URL. Without another server, werift asks a public one, and waits 5 s if that does not answer.
 */
export async function startStunServer(): Promise<string> {
  const socket = createSocket('udp4');
  socket.unref();
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.on('message', (datagram, { address, port }) => {
    const reply = answer(datagram, address, port);
    if (reply !== undefined) socket.send(reply, port, address);
  });
  return `stun:127.0.0.1:${socket.address().port}`;
}
