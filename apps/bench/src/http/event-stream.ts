import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { encodeServerMessage, type ServerMessage } from '@bloom/protocol';
import { address, token } from './node.js';

/** Field 16 of ServerMessage: PeerMetadataUpdated, whose metadata here is `[number, sent at]`. */
const METADATA_TAG = [0x82, 0x01] as const;

export interface Tally {
  received: number;
  /** Duplicates, and events overtaken by a later one of the same room. */
  twiceOrLate: number;
  /** Milliseconds from the client that caused the event to here, for some subscribers only. */
  latencies: number[];
}

/**
 * A subscriber so light that a thousand of them leave the machine to the node: server frames are neither masked nor,
 * here, fragmented (RFC 6455 section 5.2), so they are read in place.
 */
export class EventStream {
  readonly #timed: boolean;
  readonly tally: Tally = { received: 0, twiceOrLate: 0, latencies: [] };
  readonly #socket: Socket;
  readonly #last: Int32Array;
  #rest: Buffer = Buffer.alloc(0);
  #upgraded = false;
  #events = false;
  #subscribed: () => void = () => undefined;
  /** Why the connection ended; undefined while it is open. */
  ended: string | undefined;

  private constructor(port: number, rooms: number, timed: boolean) {
    this.#timed = timed;
    this.#last = new Int32Array(rooms).fill(-1);
    this.#socket = connect(port, address);
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#socket.on('error', (error) => (this.ended ??= error.message));
    this.#socket.on('close', () => (this.ended ??= 'closed'));
  }

  /** Resolves once connected, authenticated and subscribed to notifications. */
  static async open(options: { port: number; rooms: number; timed: boolean }): Promise<EventStream> {
    const stream = new EventStream(options.port, options.rooms, options.timed);
    const subscribed = new Promise<void>((resolve, reject) => {
      stream.#subscribed = resolve;
      stream.#socket.once('close', () => reject(new Error(`no subscription: ${stream.ended}`)));
    });
    stream.#socket.write(
      `GET /socket/server/websocket HTTP/1.1\r\nhost: ${address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
    );
    await subscribed;
    return stream;
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(message: ServerMessage): void {
    const payload = encodeServerMessage(message);
    // Clients must mask; a mask of zeros leaves the bytes unchanged.
    this.#socket.write(Buffer.concat([Buffer.from([0x82, 0x80 | payload.byteLength, 0, 0, 0, 0]), payload]));
  }

  #read(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (!this.#upgraded) {
      const end = data.indexOf('\r\n\r\n');
      if (end < 0) {
        this.#rest = data;
        return;
      }
      this.#upgraded = true;
      data = data.subarray(end + 4);
      this.#send({ type: 'authRequest', token });
      this.#send({ type: 'subscribeRequest', eventType: 'serverNotification' });
    }
    let at = 0;
    while (data.length - at >= 2) {
      const short = data[at + 1] ?? 0;
      if (short === 127) throw new Error('a frame beyond 64 KiB');
      const header = short === 126 ? 4 : 2;
      if (data.length - at < header) break;
      const length = short === 126 ? data.readUInt16BE(at + 2) : short;
      if (data.length - at < header + length) break;
      this.#frame(data, { opcode: (data[at] ?? 0) & 0x0f, start: at + header, length });
      at += header + length;
    }
    this.#rest = data.subarray(at);
  }

  #frame(data: Buffer, frame: { opcode: number; start: number; length: number }): void {
    const { opcode, start, length } = frame;
    if (opcode === 9) {
      this.#socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
      return;
    }
    if (opcode === 8) {
      this.ended ??= `closed with ${data.readUInt16BE(start)} ${data.toString('utf8', start + 2, start + length)}`;
      return;
    }
    if (data[start] === METADATA_TAG[0] && data[start + 1] === METADATA_TAG[1]) {
      this.#event(data, start, start + length);
    } else if (!this.#events && data[start] === 0x4a) {
      // Field 9, the SubscribeResponse.
      this.#events = true;
      this.#subscribed();
    }
  }

  /** Reads an event. Rooms are called `bench-<number>`, so only two numbers need decoding. */
  #event(data: Buffer, start: number, end: number): void {
    const roomAt = data.indexOf('bench-', start) + 6;
    let room = 0;
    for (let at = roomAt; isDigit(data[at]); at += 1) room = room * 10 + (data[at] ?? 0) - 0x30;
    const listAt = data.indexOf(0x5b, roomAt + 36);
    let number = 0;
    let at = listAt + 1;
    for (; isDigit(data[at]); at += 1) number = number * 10 + (data[at] ?? 0) - 0x30;

    const last = this.#last[room] ?? -1;
    this.tally.received += 1;
    if (number <= last) this.tally.twiceOrLate += 1;
    this.#last[room] = Math.max(last, number);
    if (this.#timed) this.tally.latencies.push(performance.now() - Number(data.toString('latin1', at + 1, end - 1)));
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}
