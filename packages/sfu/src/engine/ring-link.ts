import type { MessagePort } from 'node:worker_threads';
import { asReceived } from '@bloom/webrtc';
import { type PacketRoute, type RingPacket, RingReader, RingWriter } from '../crossing/shared-ring.js';
import { bytesOf, type CrossingData, type CrossingMessage, type WorkerLink } from '../crossing/worker-link.js';

/** Longer packets do not cross to another worker; clients' packets are below 1,600 bytes. */
const MAX_PACKET = 2048;
/** Packets handled before other events get their turn. */
const PACKETS_PER_TURN = 256;
/** Bytes of data messages that may wait for the other worker, of all rooms. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** Wakes the other end to read its ring. */
const WAKE = 0;

/** One end of the link between two workers; plain data, which the main thread sends to both. */
export interface LinkEnd {
  /** Number of the other worker. */
  worker: number;
  port: MessagePort;
  outgoing: SharedArrayBuffer;
  incoming: SharedArrayBuffer;
}

interface LinkReceiver {
  packet(packet: RingPacket): void;
  message(message: CrossingMessage): void;
}

/**
 * The link to another worker: packets go through shared memory, everything else as messages. Neither direction ever
 * waits for the other worker.
 */
export class RingLink implements WorkerLink {
  readonly worker: number;
  readonly #port: MessagePort;
  readonly #writer: RingWriter;
  readonly #reader: RingReader;
  readonly #receiver: LinkReceiver;
  #closed = false;

  constructor({ worker, port, outgoing, incoming }: LinkEnd, receiver: LinkReceiver) {
    this.worker = worker;
    this.#port = port;
    this.#writer = new RingWriter(outgoing);
    this.#reader = new RingReader(incoming, asReceived(new Uint8Array(MAX_PACKET)));
    this.#receiver = receiver;
    port.on('message', (message: typeof WAKE | CrossingMessage) => {
      if (message === WAKE) this.#drain();
      else this.#receive(message);
    });
    this.#drain();
  }

  forward(route: PacketRoute, packet: Uint8Array, sequence: number): boolean {
    if (packet.length > MAX_PACKET || !this.#writer.write(route, packet, sequence)) return false;
    if (this.#writer.mustWake()) this.#port.postMessage(WAKE, []);
    return true;
  }

  post(message: CrossingMessage): void {
    if (message.type === 'data') this.#writer.sent(message.room, bytesOf(message.data));
    this.#port.postMessage(message, []);
  }

  /** A room may have as much waiting as stays free, half of what the others leave: one room never fills a link. */
  fits(room: number, data: CrossingData): boolean {
    const free = MAX_WAITING_BYTES - this.#writer.waitingBytes;
    return this.#writer.waitingBytesOf(room) + bytesOf(data) <= free;
  }

  close(): void {
    this.#closed = true;
    this.#port.close();
  }

  #receive(message: CrossingMessage): void {
    if (message.type === 'data') this.#reader.taken(message.room, bytesOf(message.data));
    this.#receiver.message(message);
  }

  readonly #drain = (): void => {
    const reader = this.#reader;
    const { packet } = reader;
    for (let i = 0; i < PACKETS_PER_TURN; i++) {
      if (this.#closed) return;
      if (reader.next()) this.#receiver.packet(packet);
      else if (reader.sleep()) return;
    }
    setImmediate(this.#drain);
  };
}
