import type {
  CapturedPackets,
  MediaEndpoint,
  MediaRoom,
  MediaRoomEvent,
  RelayCredentials,
  RoomMediaStats,
  TransportNegotiation,
  Variant,
} from '../media-engine.js';
import type { FeedOptions, MediaFeed, MediaTap, TapOptions } from '../media-frames.js';
import type { PerVariant } from '../variants.js';
import type { MediaWorker } from './media-worker.js';
import { isCurrent } from './current-transport.js';
import { RemoteFrames } from './remote-frames.js';

export interface RemoteRoomOptions {
  roomId: string;
  /** Number of this opening. */
  room: number;
  worker: MediaWorker;
  endpoint: MediaEndpoint;
  onEvent(event: MediaRoomEvent): void;
  /** Where TCP clients of a relay user belong; undefined = nowhere any more. */
  routeUser(username: string, worker: MediaWorker | undefined): void;
  /** The name may be used again. */
  onClosed(): void;
}

/** A room on a worker. */
export class RemoteRoom implements MediaRoom {
  /** By peer: the relay user of its transport, and the transport's number. */
  private readonly transportOf = new Map<string, { username: string; transport: number }>();
  private closed: Promise<void> | undefined;
  readonly frames: RemoteFrames;

  constructor(private readonly options: RemoteRoomOptions) {
    this.frames = new RemoteFrames(options.worker, options.room);
  }

  get roomId(): string {
    return this.options.roomId;
  }

  get endpoint(): MediaEndpoint {
    return this.options.endpoint;
  }

  get transports(): number {
    return this.transportOf.size;
  }

  onEvent(event: MediaRoomEvent): void {
    if (this.closed === undefined) this.options.onEvent(event);
  }

  /** The worker is gone. */
  fail(reason: string): void {
    if (this.closed !== undefined) return;
    this.closed = Promise.resolve();
    this.forget();
    this.frames.fail();
    this.options.onEvent({ type: 'roomFailed', reason });
  }

  openTransport(peerId: string, relay: RelayCredentials): void {
    if (this.closed !== undefined) return;
    const { worker, room } = this.options;
    this.dropUser(peerId);
    const transport = worker.newNumber();
    this.transportOf.set(peerId, { username: relay.username, transport });
    this.options.routeUser(relay.username, worker);
    worker.post({ type: 'openTransport', room, peerId, transport, relay });
  }

  async negotiate(peerId: string, negotiation: TransportNegotiation): Promise<void> {
    const { worker, room } = this.options;
    await worker.call({ type: 'negotiate', room, peerId, negotiation });
  }

  closeTransport(peerId: string): void {
    this.dropUser(peerId);
    const { worker, room } = this.options;
    worker.post({ type: 'closeTransport', room, peerId });
  }

  isCurrent(event: MediaRoomEvent): boolean {
    return isCurrent(event, (peerId) => this.transportOf.get(peerId)?.transport);
  }

  setTargetVariant(peerId: string, trackId: string, variant: Variant): void {
    const { worker, room } = this.options;
    worker.post({ type: 'setTargetVariant', room, peerId, trackId, variant });
  }

  setTrackBitrates(trackId: string, bitratesBps: Partial<PerVariant<number>>): void {
    const { worker, room } = this.options;
    worker.post({ type: 'setTrackBitrates', room, trackId, bitratesBps });
  }

  setTrackMuted(trackId: string, muted: boolean): void {
    const { worker, room } = this.options;
    worker.post({ type: 'setTrackMuted', room, trackId, muted });
  }

  openFeed(options: FeedOptions): MediaFeed {
    return this.frames.openFeed(options);
  }

  openTap(options: TapOptions): MediaTap {
    return this.frames.openTap(options);
  }

  async capturePackets(peerId: string, end = false): Promise<CapturedPackets | undefined> {
    const { worker, room } = this.options;
    return (await worker.call({ type: 'capturePackets', room, peerId, end })) as CapturedPackets | undefined;
  }

  async stats(): Promise<RoomMediaStats> {
    const { worker, room } = this.options;
    return (await worker.call({ type: 'roomStats', room })) as RoomMediaStats;
  }

  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  private async end(): Promise<void> {
    const { worker, room } = this.options;
    this.forget();
    // A worker that dies meanwhile has closed the room in its own way. Until then the last frames of taps come in.
    await worker.call({ type: 'closeRoom', room }).catch(() => undefined);
    worker.rooms.delete(room);
  }

  private forget(): void {
    for (const { username } of this.transportOf.values()) this.options.routeUser(username, undefined);
    this.transportOf.clear();
    this.options.onClosed();
  }

  private dropUser(peerId: string): void {
    const known = this.transportOf.get(peerId);
    if (known === undefined) return;
    this.transportOf.delete(peerId);
    this.options.routeUser(known.username, undefined);
  }
}
