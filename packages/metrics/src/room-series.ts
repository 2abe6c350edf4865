import type { Counter, Gauge, Registry } from 'prom-client';
import type { Clock } from '@bloom/time';
import { seriesOf } from './series.js';

/** Time for which the zeros of a removed room are served, so that a scraper sees them. */
const KEEP_REMOVED_MS = 5 * 60_000;

interface Room {
  peers: number;
  /** Time of removal; undefined while the room exists. */
  removedAt: number | undefined;
}

interface RoomSeriesOptions {
  registry: Registry;
  tickSeconds: number;
  clock: Clock;
}

/** Series with the label `room_id`: 0 from creation, 0 after removal, and dropped 5 minutes later. */
export class RoomSeries {
  readonly #options: RoomSeriesOptions;
  readonly #rooms = new Map<string, Room>();
  #live = 0;
  readonly #roomCount: Gauge;
  readonly #peers: Gauge<'room_id'>;
  readonly #peerTime: Counter<'room_id'>;
  readonly #duration: Counter<'room_id'>;
  readonly #connects: Counter<'room_id'>;
  readonly #disconnects: Counter<'room_id'>;
  readonly #crashes: Counter<'room_id'>;
  readonly #counters: Counter<'room_id'>[];

  constructor(options: RoomSeriesOptions) {
    this.#options = options;
    const { counter: counterOf, gauge } = seriesOf(options.registry);
    const counter = (name: string, help: string) => counterOf(name, help, 'room_id');

    this.#roomCount = gauge('bloom_rooms', 'Rooms on this node');
    this.#peers = gauge('bloom_room_peers', 'Peers in the room, connected or not', 'room_id');
    this.#peerTime = counter(
      'bloom_room_peer_time_seconds_total',
      'Seconds that peers spent in the room, all together',
    );
    this.#duration = counter('bloom_room_duration_seconds_total', 'Seconds that the room lives');
    this.#connects = counter('bloom_room_peer_connects_total', 'Peers that connected');
    this.#disconnects = counter('bloom_room_peer_disconnects_total', 'Peers that disconnected');
    this.#crashes = counter('bloom_room_peer_crashes_total', 'Peers that crashed');
    this.#counters = [this.#peerTime, this.#duration, this.#connects, this.#disconnects, this.#crashes];
  }

  created(roomId: string): void {
    const known = this.#rooms.get(roomId);
    if (known !== undefined && known.removedAt === undefined) return;

    this.#rooms.set(roomId, { peers: 0, removedAt: undefined });
    this.#zero(roomId);
    this.#live += 1;
    this.#roomCount.set(this.#live);
  }

  removed(roomId: string): void {
    const room = this.#liveRoom(roomId);
    if (room === undefined) return;

    room.removedAt = this.#options.clock.now();
    room.peers = 0;
    this.#zero(roomId);
    this.#live -= 1;
    this.#roomCount.set(this.#live);
  }

  addPeers(roomId: string, change: number): void {
    const room = this.#liveRoom(roomId);
    if (room === undefined) return;

    room.peers = Math.max(0, room.peers + change);
    this.#peers.set({ room_id: roomId }, room.peers);
  }

  peerConnected(roomId: string): void {
    this.#count(this.#connects, roomId);
  }

  peerDisconnected(roomId: string): void {
    this.#count(this.#disconnects, roomId);
  }

  peerCrashed(roomId: string): void {
    this.#count(this.#crashes, roomId);
  }

  tick(): void {
    const { tickSeconds } = this.#options;
    const oldest = this.#options.clock.now() - KEEP_REMOVED_MS;

    for (const [roomId, room] of this.#rooms) {
      if (room.removedAt === undefined) {
        this.#duration.inc({ room_id: roomId }, tickSeconds);
        if (room.peers > 0) this.#peerTime.inc({ room_id: roomId }, room.peers * tickSeconds);
      } else if (room.removedAt <= oldest) {
        this.#drop(roomId);
        this.#rooms.delete(roomId);
      }
    }
  }

  /** Returns a room that still exists. A late event must not bring back the label of an ended room. */
  #liveRoom(roomId: string): Room | undefined {
    const room = this.#rooms.get(roomId);

    return room?.removedAt === undefined ? room : undefined;
  }

  #count(counter: Counter<'room_id'>, roomId: string): void {
    if (this.#liveRoom(roomId) !== undefined) counter.inc({ room_id: roomId });
  }

  #zero(roomId: string): void {
    this.#drop(roomId);
    this.#peers.set({ room_id: roomId }, 0);
    for (const counter of this.#counters) counter.inc({ room_id: roomId }, 0);
  }

  #drop(roomId: string): void {
    this.#peers.remove({ room_id: roomId });
    for (const counter of this.#counters) counter.remove({ room_id: roomId });
  }
}
