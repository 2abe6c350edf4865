import { randomFillSync } from 'node:crypto';
import type { Log } from '@bloom/log';
import { epochNow } from '@bloom/time';
import { createPacketSealer, type DtlsCertificate, type MediaPort, openMediaPort } from '@bloom/webrtc';
import { MediaContext } from '../forwarding/context.js';
import { ForwardingRoom } from '../forwarding/room.js';
import type { MediaAnswer, RoomCommand, RoomReport } from '../room-command.js';
import type { EngineStats } from '../media-engine.js';
import { MediaError } from '../media-error.js';

/** Short enough for transport-wide feedback every 60 ms and an early first NACK. */
const TICK_MS = 20;

interface MediaCoreOptions {
  /** Address the UDP socket binds to. */
  listenIp: string;
  /** An address of the other family. */
  secondListenIp?: string;
  /** Address clients reach us at. */
  announcedIp: string;
  /** The first free port is taken; `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  certificate: DtlsCertificate;
  /** Shared by an engine's ports and its TCP listener; 32 bytes. */
  nonceSecret: Buffer;
  log: Log;
}

/** One UDP port and its rooms, in the calling thread. Rooms are identified by number because an id may be reused. */
export class MediaCore {
  readonly port: MediaPort;
  readonly #context: MediaContext;
  readonly #rooms = new Map<number, ForwardingRoom>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(port: MediaPort, context: MediaContext) {
    this.port = port;
    this.#context = context;
  }

  /** Rejects with the port's `WebrtcError` if no port can be bound. */
  static async open(options: MediaCoreOptions): Promise<MediaCore> {
    const sealer = createPacketSealer();
    const port = await openMediaPort({
      listenAddress: options.listenIp,
      ...(options.secondListenIp === undefined ? {} : { secondListenAddress: options.secondListenIp }),
      advertisedAddress: options.announcedIp,
      portRange: options.portRange,
      certificate: options.certificate,
      nonceSecret: options.nonceSecret,
      clock: epochNow,
      onSlotFree: (slot) => sealer.release(slot),
    });
    const world = { now: epochNow, random: randomUint32, log: options.log };
    return new MediaCore(port, new MediaContext(world, port, sealer));
  }

  /** @throws MediaError CLOSED if the core is closed */
  openRoom(number: number, roomId: string, report: (report: RoomReport) => void): void {
    if (this.#closed) throw new MediaError('CLOSED', `the media engine is closed, room ${roomId} cannot be opened`);
    this.#rooms.set(number, new ForwardingRoom(this.#context, roomId, report));
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
  }

  /** Runs a command; one for a closed room lost a race and is ignored. Never throws. */
  post(number: number, command: RoomCommand): void {
    try {
      this.#rooms.get(number)?.apply(command);
    } catch (error) {
      this.#context.world.log.error('media.command_failed', { command: command.type, error });
    }
  }

  /** Runs a command and returns its answer. @throws MediaError CLOSED if the room is closed */
  call(number: number, command: RoomCommand): MediaAnswer {
    const room = this.#rooms.get(number);
    if (room === undefined) throw new MediaError('CLOSED', 'the room is closed');
    return room.apply(command);
  }

  closeRoom(number: number): void {
    const room = this.#rooms.get(number);
    if (room === undefined) return;
    this.#rooms.delete(number);
    room.close();
    if (this.#rooms.size === 0) this.#stopTimer();
  }

  stats(): EngineStats {
    const port = this.port.stats();
    const { overruns, oversized, sinkFaults } = this.#context.sealer.counters;
    return {
      rooms: this.#rooms.size,
      transports: port.transports,
      bytesReceived: port.bytesReceived,
      bytesSent: port.bytesSent,
      packetsReceived: port.packetsReceived,
      packetsSent: port.packetsSent,
      packetsForwarded: this.#context.packetsForwarded,
      dataMessagesReceived: this.#context.dataMessages.received,
      dataMessagesSent: this.#context.dataMessages.sent,
      dropped: {
        ...port.dropped,
        ...this.#context.dropped,
        oversized: this.#context.dropped.oversized + oversized,
        send_overrun: overruns,
        sink_fault: sinkFaults,
      },
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const number of this.#rooms.keys()) this.closeRoom(number);
    this.#stopTimer();
    await this.port.close();
  }

  #tick(): void {
    const nowMs = epochNow();
    for (const room of this.#rooms.values()) room.tick(nowMs);
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const random = new Uint32Array(64);
let randomLeft = 0;

function randomUint32(): number {
  if (randomLeft === 0) {
    randomFillSync(random);
    randomLeft = random.length;
  }
  randomLeft--;
  return random[randomLeft]!;
}
