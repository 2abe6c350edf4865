import { randomFillSync } from 'node:crypto';
import type { Log } from '@bloom/log';
import { createPacketSealer, type DtlsCertificate, type MediaPort, openMediaPort } from '@bloom/webrtc';
import { MediaContext } from '../forwarding/context.js';
import { ForwardingRoom } from '../forwarding/room.js';
import type { EngineStats, MediaRoomEvent } from '../media-engine.js';
import { MediaError } from '../media-error.js';

/** Fine enough for transport-wide feedback every 60 ms and a first NACK soon after the loss. */
const TICK_MS = 20;

export interface MediaCoreOptions {
  /** Address the UDP socket binds to. */
  listenIp: string;
  /** Address clients reach us at. */
  announcedIp: string;
  /** The first free port is taken; `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  certificate: DtlsCertificate;
  /** Shared by the ports of an engine and its TCP listener; 32 bytes. */
  nonceSecret: Buffer;
  log: Log;
}

/** One UDP port with the rooms on it, in the thread that calls it. */
export class MediaCore {
  private readonly rooms = new Map<string, ForwardingRoom>();
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  private constructor(
    readonly port: MediaPort,
    private readonly context: MediaContext,
  ) {}

  /** Rejects with the port's `WebrtcError` when no port can be bound. */
  static async open(options: MediaCoreOptions): Promise<MediaCore> {
    const sealer = createPacketSealer();
    const port = await openMediaPort({
      listenAddress: options.listenIp,
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

  get log(): Log {
    return this.context.world.log;
  }

  openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): ForwardingRoom {
    if (this.closed) throw new MediaError('CLOSED', `the media engine is closed, room ${roomId} cannot be opened`);
    if (this.rooms.has(roomId)) throw new MediaError('EXISTS', `the room ${roomId} is open already`);
    const room = new ForwardingRoom(this.context, roomId, onEvent);
    this.rooms.set(roomId, room);
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref();
    return room;
  }

  room(roomId: string): ForwardingRoom | undefined {
    return this.rooms.get(roomId);
  }

  closeRoom(roomId: string): void {
    const room = this.rooms.get(roomId);
    if (room === undefined) return;
    this.rooms.delete(roomId);
    room.close();
    if (this.rooms.size === 0) this.stopTimer();
  }

  stats(): EngineStats {
    const port = this.port.stats();
    const { overruns, oversized, sinkFaults } = this.context.sealer.counters;
    return {
      rooms: this.rooms.size,
      transports: port.transports,
      bytesReceived: port.bytesReceived,
      bytesSent: port.bytesSent,
      packetsReceived: port.packetsReceived,
      packetsSent: port.packetsSent,
      packetsForwarded: this.context.packetsForwarded,
      dropped: {
        ...port.dropped,
        ...this.context.dropped,
        oversized: this.context.dropped.oversized + oversized,
        send_overrun: overruns,
        sink_fault: sinkFaults,
      },
    };
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const roomId of this.rooms.keys()) this.closeRoom(roomId);
    this.stopTimer();
    await this.port.close();
  }

  private tick(): void {
    const nowMs = epochNow();
    for (const room of this.rooms.values()) room.tick(nowMs);
  }

  private stopTimer(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

/** Milliseconds since the epoch that never go back, the same in all threads. */
export function epochNow(): number {
  return performance.timeOrigin + performance.now();
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
