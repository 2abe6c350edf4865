/**
 * Clients with one data channel each, in a process of the lowest priority, so that their work delays neither the node
 * nor the measured media. The argument holds the options. A number from the parent sets each client's send rate; the
 * answer is what was heard since the previous number.
 */
import { setPriority } from 'node:os';
import type { RTCDataChannel, RTCPeerConnection } from 'werift';
import { connection } from '../sfu/client.js';
import { BloomClients } from '../sfu/servers/bloom-clients.js';

export interface TalkersOptions {
  port: number;
  rooms: number;
  perRoom: number;
  /** Size of a message in bytes. */
  bytes: number;
}

export interface Heard {
  sent: number;
  received: number;
  latenciesMs: number[];
}

setPriority(19);
process.once('disconnect', () => process.exit());
const { port, rooms, perRoom, bytes } = JSON.parse(process.argv[2] ?? '') as TalkersOptions;
const clients = new BloomClients(port);
const channels: RTCDataChannel[] = [];
let heard: Heard = { sent: 0, received: 0, latenciesMs: [] };
const now = (): number => performance.timeOrigin + performance.now();

for (let room = 0; room < rooms; room += 1) {
  const roomId = await clients.openRoom();
  for (let peer = 0; peer < perRoom; peer += 1) channels.push(await talker(roomId));
}
process.send?.('ready');

let timer: NodeJS.Timeout | undefined;
process.on('message', (perSecond: number) => {
  clearInterval(timer);
  process.send?.(heard);
  heard = { sent: 0, received: 0, latenciesMs: [] };
  const startedAt = performance.now();
  let sent = 0;
  timer = setInterval(() => {
    const due = ((performance.now() - startedAt) * perSecond * channels.length) / 1_000;
    for (; sent < due; sent += 1) say(channels[sent % channels.length]!);
  }, 1);
});

/** Joins a room and opens the channel. */
async function talker(roomId: string): Promise<RTCDataChannel> {
  const pc = connection();
  // werift chooses the stream by its ICE role; the DTLS client has the even ones (RFC 8832 section 6).
  const channel = pc.createDataChannel('talk', { id: 0 });
  const open = new Promise<void>((resolve) => {
    channel.stateChanged.subscribe((state) => {
      if (state === 'open') resolve();
      else if (state === 'closed') throw new Error(`the channel of a talker in ${roomId} was closed`);
    });
  });
  channel.onMessage.subscribe((frame) => {
    heard.received += 1;
    if (heard.received % 50 === 0) heard.latenciesMs.push(now() - (frame as Buffer).readDoubleLE(frame.length - 8));
  });
  await clients.join(roomId, pc);
  acknowledgeEverySecond(pc);
  await open;
  return channel;
}

/** Acknowledges every second packet, as browsers do (RFC 9260 section 6.2); werift acknowledges each one. */
function acknowledgeEverySecond(pc: RTCPeerConnection): void {
  const sctp = pc.sctpTransport!.sctp as unknown as {
    receiveDataChunk(chunk: unknown): void;
    sackImmediate: boolean;
    sackMisOrdered: Set<number>;
  };
  const receive = sctp.receiveDataChunk.bind(sctp);
  sctp.receiveDataChunk = (chunk) => {
    receive(chunk);
    sctp.sackImmediate = sctp.sackMisOrdered.size > 0;
  };
}

/** Sends to everyone in the room: an empty list of receivers, then the message with its time at the end. */
function say(channel: RTCDataChannel): void {
  const frame = Buffer.alloc(1 + bytes);
  frame.writeDoubleLE(now(), frame.length - 8);
  channel.send(frame);
  heard.sent += 1;
}
