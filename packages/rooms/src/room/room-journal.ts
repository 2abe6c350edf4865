import type { Log, LogFields } from '@bloom/log';
import type { MediaEndpoint, MediaReport } from '@bloom/sfu';
import type { ConnectFailure, Traffic } from '../peer/peer-traffic.js';
import type { SocketEnd } from '../room-service.js';
import type { ComponentRecord } from './component-table.js';
import { MediaJournal, type MediaMeasure } from './media-journal.js';

/** `left`: the client left before its media was up; includes participants with nothing to send or receive. */
export type JoinOutcome = 'media' | 'left' | 'failed';

/** Measurements of joins and components, for metrics. */
export type RoomMeasure =
  /** `seconds`: from the authentication of the websocket to the DTLS connection, or to the end. */
  | { type: 'join'; peerId: string; outcome: JoinOutcome; seconds: number }
  | { type: 'connectFailure'; cause: ConnectFailure | 'silent' }
  | { type: 'componentCrashed'; kind: string }
  | MediaMeasure;

/**
 * Why a peer or its connection ended. `disconnected_too_long`: the disconnect timeout has passed. `media_lost`: the
 * media worker of its transport has ended.
 */
export type ConnectionEnd =
  | SocketEnd
  | 'replaced'
  | 'media_lost'
  | 'removed'
  | 'disconnected_too_long'
  | 'crashed'
  | 'room_ended'
  | 'room_moved'
  | 'room_crashed';

export type ComponentEnd = 'removed' | 'finished' | 'room_ended' | 'room_moved';

export type RoomEnd = 'deleted' | 'no_peers' | 'node_closing' | 'moved' | 'crashed';

export interface RoomJournalOptions {
  /** Returns the room's current logger, whose lines carry the request id. */
  log: () => Log;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Resolves with the traffic over the peer's closed transports. Never rejects. */
  traffic: (peerId: string) => Promise<Traffic>;
  measure: (measure: RoomMeasure) => void;
  /** Returns where the peer's transport is reached; undefined if it has none. */
  endpointOf: (peerId: string) => MediaEndpoint | undefined;
}

/** One connection of a peer. */
interface Visit {
  since: number;
  name: string | undefined;
  /** The client has sent `connect`, and the join is logged. */
  joined: boolean;
  /** The client has sent `disconnect` since it joined last, and its end is logged. */
  left: boolean;
  measured: boolean;
}

const MAX_NAME = 64;

/**
 * Logs one line per participant, per component and per end of a room: who took part, for how long, how much was sent,
 * and why it ended (docs/reference/log-events.md). A peer's line waits for its traffic, which is known a moment after
 * its end.
 */
export class RoomJournal {
  readonly #options: RoomJournalOptions;
  readonly #media: MediaJournal;
  readonly #since: number;
  readonly #visits = new Map<string, Visit>();
  readonly #components = new Map<string, number>();
  /** Lines that wait for traffic. */
  readonly #pending = new Set<Promise<void>>();
  #people = 0;

  constructor(options: RoomJournalOptions) {
    this.#options = options;
    this.#media = new MediaJournal(options);
    this.#since = options.now();
  }

  /** Records that the client has authenticated, which is also when the backend is notified. */
  attached(peerId: string): void {
    const since = this.#options.now();
    this.#visits.set(peerId, { since, name: undefined, joined: false, left: false, measured: false });
    this.#options.log().info('peer.connected', { peerId });
  }

  joined(peerId: string, metadata: unknown): void {
    const visit = this.#visits.get(peerId);
    if (visit === undefined) return;
    visit.joined = true;
    visit.left = false;
    visit.name = nameOf(metadata);
    this.#people += 1;
    this.#options.log().info('peer.joined', { peerId, name: visit.name });
  }

  /** Records that the peer's DTLS handshake has completed: media can flow. */
  mediaUp(peerId: string): void {
    const visit = this.#visits.get(peerId);
    if (visit !== undefined) this.#measureJoin(peerId, visit, { outcome: 'media' });
  }

  mediaState(peerId: string, report: MediaReport): void {
    this.#media.reported(peerId, this.#visits.get(peerId)?.name, report);
  }

  /** Forgets a peer that has been removed from the room. */
  forget(peerId: string): void {
    this.#media.forget(peerId);
  }

  silent(peerId: string): void {
    this.#options.log().warn('peer.transport_silent', { peerId });
    this.#options.measure({ type: 'connectFailure', cause: 'silent' });
  }

  /**
   * Records that the client has left on an open websocket. The connection stays open, and the client may join again.
   */
  leftRoom(peerId: string): void {
    const visit = this.#visits.get(peerId);
    if (visit === undefined) return;
    this.#write(peerId, visit, { why: 'closed_by_client' });
    this.#visits.set(peerId, { ...visit, since: this.#options.now(), joined: false, left: true, measured: true });
  }

  /** Records the end of the peer or of its connection. Its transport is being closed. */
  disconnected(peerId: string, why: ConnectionEnd, reason?: string): void {
    const visit = this.#visits.get(peerId);
    this.#visits.delete(peerId);
    if (visit !== undefined && !visit.left) return this.#write(peerId, visit, { why, reason });

    void this.#options.traffic(peerId);
    if (why === 'removed' || why === 'disconnected_too_long') this.#options.log().info('peer.removed', { peerId, why });
  }

  componentAdded({ id: componentId, type: kind }: ComponentRecord): void {
    this.#components.set(componentId, this.#options.now());
    this.#options.log().info('component.added', { componentId, kind });
  }

  componentPlayable({ id: componentId, type: kind }: ComponentRecord): void {
    this.#options.log().info('component.playable', { componentId, kind, seconds: this.#componentAge(componentId) });
  }

  componentEnded({ id: componentId, type: kind }: ComponentRecord, why: ComponentEnd): void {
    const seconds = this.#componentAge(componentId);
    // A component that has crashed has had its line.
    if (!this.#components.delete(componentId)) return;
    this.#options.log().info('component.ended', { componentId, kind, why, seconds });
  }

  componentCrashed({ id: componentId, type: kind }: ComponentRecord, reason: string): void {
    const seconds = this.#componentAge(componentId);
    this.#components.delete(componentId);
    this.#options.log().warn('component.crashed', { componentId, kind, reason, seconds });
    this.#options.measure({ type: 'componentCrashed', kind });
  }

  /** Logs the room's last line, after those of its participants. */
  roomEnded(why: RoomEnd): void {
    const log = this.#options.log();
    const fields = { why, seconds: this.#secondsSince(this.#since), people: this.#people };
    const last = (): void => log.info('room.ended', fields);
    if (this.#pending.size === 0) last();
    else void Promise.all(this.#pending).then(last);
  }

  #write(peerId: string, visit: Visit, { why, reason }: { why: ConnectionEnd; reason?: string | undefined }): void {
    const { log, traffic, measure } = this.#options;
    const seconds = this.#secondsSince(visit.since);
    const lineLog = log();
    const line = traffic(peerId).then(({ failure, ...bytes }) => {
      this.#pending.delete(line);
      if (failure !== undefined) measure({ type: 'connectFailure', cause: failure });
      const outcome = failure === undefined && why !== 'crashed' ? 'left' : 'failed';
      this.#measureJoin(peerId, visit, { outcome, seconds });
      const fields = { peerId, name: visit.name, why, reason, seconds, ...bytes, failure };
      writeEnd(lineLog, why, visit.joined ? fields : { ...fields, joined: false });
    });
    this.#pending.add(line);
  }

  #measureJoin(
    peerId: string,
    visit: Visit,
    { outcome, seconds = this.#secondsSince(visit.since) }: { outcome: JoinOutcome; seconds?: number },
  ): void {
    if (visit.measured) return;
    visit.measured = true;
    this.#options.measure({ type: 'join', peerId, outcome, seconds });
  }

  #componentAge(componentId: string): number {
    return this.#secondsSince(this.#components.get(componentId) ?? this.#options.now());
  }

  #secondsSince(since: number): number {
    return Math.round(this.#options.now() - since) / 1_000;
  }
}

function writeEnd(log: Log, why: ConnectionEnd, fields: LogFields): void {
  switch (why) {
    case 'closed_by_client':
    case 'room_ended':
      return log.info('peer.left', fields);
    case 'removed':
      return log.info('peer.removed', fields);
    case 'crashed':
    case 'room_crashed':
      return log.warn('peer.crashed', fields);
    default:
      return log.info('peer.lost', fields);
  }
}

/** Returns the name in a peer's metadata, shortened. The backend's part takes precedence over the client's. */
function nameOf(metadata: unknown): string | undefined {
  const whole = fieldsOf(metadata);
  const given = [fieldsOf(whole['server']), fieldsOf(whole['peer']), whole]
    .flatMap(({ name, displayName }) => [name, displayName])
    .find((each) => typeof each === 'string' && each.trim() !== '');

  return typeof given === 'string' ? given.slice(0, MAX_NAME) : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
