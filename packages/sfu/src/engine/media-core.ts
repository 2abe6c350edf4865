import { randomFillSync } from 'node:crypto';
import type { Log } from '@bloom/log';
import { epochNow, isPowerOfTwo } from '@bloom/time';
import { createPacketSealer, type MediaPort, openMediaPort } from '@bloom/webrtc';
import { MediaContext } from '../context.js';
import type { RingPacket } from '../crossing/shared-ring.js';
import type { CrossingMessage } from '../crossing/worker-link.js';
import { ForwardingRoom } from '../forwarding/room.js';
import type { MediaAnswer, RoomCommand, RoomReport } from '../room-command.js';
import type { EngineStats } from '../media-engine.js';
import { MediaError } from '../media-error.js';
import { type LinkEnd, RingLink } from './ring-link.js';
import type { WorkerSettings } from './worker-protocol.js';

/** Short enough for transport-wide feedback every 60 ms and an early first NACK. */
const TICK_MS = 20;

interface MediaCoreOptions extends WorkerSettings {
  nonceSecret: Buffer;
  log: Log;
}

/** One UDP port and its rooms, in the calling thread. Rooms are identified by number because an id may be reused. */
export class MediaCore {
  readonly port: MediaPort;
  readonly #context: MediaContext;
  readonly #rooms = new Map<number, ForwardingRoom>();
  readonly #links = new Map<number, RingLink>();
  #timer: NodeJS.Timeout | undefined;
  #crossingFaults = 0;
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
      ...(options.moreListenIps === undefined ? {} : { moreListenAddresses: options.moreListenIps }),
      advertisedAddress: options.announcedIp,
      portRange: options.portRange,
      ...(options.advertisedPorts === undefined ? {} : { advertisedPorts: options.advertisedPorts }),
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

  /** Connects the rooms that this core shares with another one. */
  link(end: LinkEnd): void {
    const { worker } = end;
    this.unlink(worker);
    const link = new RingLink(end, {
      packet: (packet) => this.#crossed(worker, packet),
      message: (message) => this.#told(worker, message),
    });
    this.#links.set(worker, link);
    this.#context.links.set(worker, link);
  }

  /** The other core has ended. Its rooms leave with `unspan`. */
  unlink(worker: number): void {
    this.#links.get(worker)?.close();
    this.#links.delete(worker);
    this.#context.links.delete(worker);
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
      packetsCrossed: this.#context.packetsCrossed,
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
    for (const worker of this.#links.keys()) this.unlink(worker);
    this.#stopTimer();
    await this.port.close();
  }

  #crossed(worker: number, packet: RingPacket): void {
    const { view } = this.#context;
    try {
      const crossings = this.#rooms.get(packet.room)?.crossings;
      if (crossings !== undefined && view.parse(packet.buffer, 0, packet.length))
        crossings.packet(worker, packet, epochNow());
    } catch (error) {
      this.#crossingFault(worker, error);
    }
  }

  #told(worker: number, message: CrossingMessage): void {
    try {
      this.#rooms.get(message.room)?.crossings?.receive(worker, message);
    } catch (error) {
      this.#crossingFault(worker, error);
    }
  }

  /** Logs occurrences 1, 2, 4, 8 and so on: a fault may repeat with each packet. */
  #crossingFault(worker: number, error: unknown): void {
    this.#crossingFaults += 1;
    if (!isPowerOfTwo(this.#crossingFaults)) return;
    this.#context.world.log.error('media.crossing_fault', { worker, faults: this.#crossingFaults, error });
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
