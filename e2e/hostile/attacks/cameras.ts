// Attacks by a camera that a room reads over RTSP, in a separate room: the victims are the calls beside it.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { nightly } from '../../harness/needs.js';
import type { Attack, Ground } from '../harness/attack.js';

const ATTACK_MS = nightly ? 10_000 : 5_000;
/** Larger than any body that is taken, and than what the process may use. */
const ENDLESS_BODY = 2_147_483_000;
const SESSION = 'v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n';
const SOUND = `${SESSION}m=audio 0 RTP/AVP 96\r\na=rtpmap:96 opus/48000/2\r\na=control:0\r\n`;
const PICTURE = `${SESSION}m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==\r\na=control:0\r\n`;
/** A slice of a picture that has begun: its `first_mb_in_slice` is not 0. */
const SLICE = Buffer.concat([Buffer.of(0x41, 0x20, 0x1a), Buffer.alloc(1_397, 0x55)]);
const PICTURES = [Buffer.from('65888400', 'hex'), Buffer.from('419a0200', 'hex')];

/** One stream of RTP, interleaved in the connection (RFC 2326, section 10.12). */
class Packets {
  readonly #payloads: readonly Buffer[];
  readonly #step: number;
  #sequence = 0;
  #timestamp = 0;

  /** @param step ticks from one packet to the next; 0: all are of one picture */
  constructor(payloads: readonly Buffer[], step: number) {
    this.#payloads = payloads;
    this.#step = step;
  }

  next(): Buffer {
    const payload = this.#payloads[this.#sequence % this.#payloads.length]!;
    const packet = Buffer.alloc(16 + payload.length);
    packet[0] = 0x24;
    packet.writeUInt16BE(12 + payload.length, 2);
    packet[4] = 0x80;
    packet[5] = this.#step === 0 ? 96 : 0x80 | 96;
    packet.writeUInt16BE(this.#sequence & 0xffff, 6);
    packet.writeUInt32BE(this.#timestamp, 8);
    packet.writeUInt32BE(7, 12);
    payload.copy(packet, 16);
    this.#sequence += 1;
    this.#timestamp = (this.#timestamp + this.#step) >>> 0;

    return packet;
  }
}

/** Sends as fast as the connection takes it. */
function flood(socket: Socket, next: () => Buffer): void {
  const send = (): void => {
    if (socket.destroyed) return;
    if (socket.write(next())) setImmediate(send);
    else socket.once('drain', send);
  };
  send();
}

interface Camera {
  readonly sdp: string;
  /** Returns the bytes sent repeatedly after PLAY. */
  readonly play?: () => () => Buffer;
  /** The description never ends. */
  readonly endless?: boolean;
}

function converse(socket: Socket, { sdp, play, endless }: Camera): void {
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    const request = bytes.toString('latin1');
    const cseq = /^CSeq: (\d+)/im.exec(request)?.[1] ?? '0';
    const reply = (rest: string): void => void socket.write(`RTSP/1.0 200 OK\r\nCSeq: ${cseq}\r\n${rest}\r\n`);
    const describes = (length: number): void => reply(`Content-Type: application/sdp\r\nContent-Length: ${length}\r\n`);
    if (request.startsWith('DESCRIBE')) {
      describes(endless ? ENDLESS_BODY : sdp.length);
      if (endless) flood(socket, () => Buffer.alloc(1 << 20, 'a'));
      else socket.write(sdp);
    } else if (request.startsWith('SETUP')) reply('Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n');
    else {
      reply('Session: 1\r\nPublic: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n');
      if (request.startsWith('PLAY') && play !== undefined) flood(socket, play());
    }
  });
}

/** Has a new room read the camera for a while. */
async function pointAt(ground: Ground, camera: Camera): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
    converse(socket, camera);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ground.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const roomId = `yard-${(server.address() as AddressInfo).port}`;
  await ground.api('POST', '/room', { roomId, videoCodec: 'h264' });
  ground.after(async () => void (await ground.api('DELETE', `/room/${roomId}`)));
  const sourceUri = `rtsp://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const options = { sourceUri, reconnectDelay: 0 };
  const { status } = await ground.api('POST', `/room/${roomId}/component`, { type: 'rtsp', options });
  expect(status).toBe(201);
  await pause(ATTACK_MS);
  expect(sockets.size).toBeLessThanOrEqual(1);
}

/** Returns batches of packets, which keep the connection full. */
const batches = (size: number, payloads: readonly Buffer[], step: number) => (): (() => Buffer) => {
  const packets = new Packets(payloads, step);
  return () => Buffer.concat(Array.from({ length: size }, () => packets.next()));
};

const camera = (title: string, given: Camera): Attack => ({
  title: `a camera ${title}`,
  run: (ground) => pointAt(ground, given),
});

const loud = camera('that sends sound as fast as it can', {
  sdp: SOUND,
  play: batches(50, [Buffer.alloc(20_000, 0xf8)], 120),
});

export const cameras: readonly Attack[] = [
  loud,
  camera('that sends pictures as fast as it can', { sdp: PICTURE, play: batches(2_000, PICTURES, 90) }),
  camera('whose picture never ends', { sdp: PICTURE, play: batches(50, [SLICE], 0) }),
  camera('whose description never ends', { sdp: SOUND, endless: true }),
  { ...loud, title: `${loud.title}, once more` },
];
