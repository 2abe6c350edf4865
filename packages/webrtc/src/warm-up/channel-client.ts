import { crc32c } from 'werift-sctp/lib/common/src/crc.js';
import { writeAck, writeOpen } from '../data/dcep.js';
import { DATA, DATA_HEADER, HEADER, SACK, SACK_HEADER } from '../data/sctp-packet.js';

const PORT = 5_000;
const INIT = 1;
const INIT_ACK = 2;
const COOKIE_ECHO = 10;
const WHOLE_MESSAGE = 0x03;
const DCEP = 50;
const WINDOW = 131_072;
const STREAMS = 1_024;
const TAG = 1;
/** Fixed part of INIT and INIT ACK, with the chunk's header (RFC 9260 section 3.3.2). */
const INIT_HEADER = 20;
const STATE_COOKIE = 7;
/** Forward TSN, and support of it and of resetting streams (RFC 3758 section 3.1, RFC 5061 section 4.2.7). */
const EXTENSIONS = Buffer.of(0xc0, 0, 0, 4, 0x80, 0x08, 0, 6, 192, 130, 0, 0);

/**
 * A minimal SCTP client that opens data channels with our association (RFC 9260, RFC 8832): it trusts the server, never
 * retransmits, and takes packets in any order.
 */
export class ChannelClient {
  /** Channels that the server has confirmed. */
  confirmed = 0;
  readonly #send: (packet: Buffer) => void;
  #peerTag = 0;
  #tsn = 1;

  constructor(send: (packet: Buffer) => void) {
    this.#send = send;
  }

  /** Starts the association. */
  connect(): void {
    const body = Buffer.alloc(INIT_HEADER - 4);
    body.writeUInt32BE(TAG, 0);
    body.writeUInt32BE(WINDOW, 4);
    body.writeUInt16BE(STREAMS, 8);
    body.writeUInt16BE(STREAMS, 10);
    body.writeUInt32BE(this.#tsn, 12);
    this.#sendChunk(INIT, 0, Buffer.concat([body, EXTENSIONS]));
  }

  /** Opens the channel of a stream. */
  open(stream: number, label: string): void {
    const header = Buffer.alloc(DATA_HEADER - 4);
    header.writeUInt32BE(this.#tsn++, 0);
    header.writeUInt16BE(stream, 4);
    header.writeUInt32BE(DCEP, 8);
    const message = writeOpen({ label, protocol: '', kind: { ordered: true } });
    this.#sendChunk(DATA, WHOLE_MESSAGE, Buffer.concat([header, message]));
  }

  /** Takes a packet of the server. */
  receive(packet: Buffer): void {
    if (packet[HEADER] === INIT_ACK) this.#echo(packet);
    // The server's DATA may follow its SACK.
    const at = packet[HEADER] === SACK ? HEADER + SACK_HEADER : HEADER;
    if (packet[at] !== DATA) return;
    if (packet[at + DATA_HEADER] === writeAck()[0]) this.confirmed += 1;
    const body = Buffer.alloc(12);
    packet.copy(body, 0, at + 4, at + 8);
    body.writeUInt32BE(WINDOW, 4);
    this.#sendChunk(SACK, 0, body);
  }

  #echo(packet: Buffer): void {
    this.#peerTag = packet.readUInt32BE(HEADER + 4);
    for (let at = HEADER + INIT_HEADER; at + 4 <= packet.length; ) {
      const length = packet.readUInt16BE(at + 2);
      if (packet.readUInt16BE(at) === STATE_COOKIE) {
        return this.#sendChunk(COOKIE_ECHO, 0, packet.subarray(at + 4, at + length));
      }
      at += (Math.max(4, length) + 3) & ~3;
    }
  }

  #sendChunk(type: number, flags: number, body: Buffer): void {
    const packet = Buffer.alloc(HEADER + ((4 + body.length + 3) & ~3));
    packet.writeUInt16BE(PORT, 0);
    packet.writeUInt16BE(PORT, 2);
    packet.writeUInt32BE(this.#peerTag, 4);
    packet[HEADER] = type;
    packet[HEADER + 1] = flags;
    packet.writeUInt16BE(4 + body.length, HEADER + 2);
    body.copy(packet, HEADER + 4);
    packet.writeUInt32LE(crc32c(packet), 8);
    this.#send(packet);
  }
}
