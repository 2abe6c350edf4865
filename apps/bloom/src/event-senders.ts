import type { Log } from '@bloom/log';
import type { NotificationBus } from '@bloom/notifications';
import type { Notification } from '@bloom/protocol';
import type { RoomRegistry } from '@bloom/rooms';
import { type Clock, LogThrottle, sleep } from '@bloom/time';

/** Pause before a member that has not answered is asked again. */
const PAUSE_MS = 1_000;
/** Errors of a question that the member may still answer, as long as it has a link. */
const UNANSWERED: ReadonlySet<string> = new Set([
  'TIMEOUT',
  'MEMBER_SILENT',
  'LINK_FULL',
  'TOO_MANY_CALLS',
  'NO_CONNECTION',
]);
/** Events that wait for one member, in number and as JSON: as many as it keeps itself for a link that is full. */
const MAX_WAITING = 10_000;
const MAX_WAITING_CHARS = 8 * 1024 * 1024;
/** Share of that for messages of data channels: clients send them at any rate. */
const DATA_SHARE = 0.5;
/** Events about files, which former owners of a room have too. */
const OF_FILES: ReadonlySet<Notification['type']> = new Set(['hlsUploaded', 'hlsUploadCrashed']);

export interface EventSendersOptions {
  readonly bus: NotificationBus;
  /** The rooms of the cluster. */
  readonly rooms: Pick<RoomRegistry, 'directory' | 'lookUp'>;
  readonly isMember: (node: string) => boolean;
  readonly log: Log;
  readonly clock: Clock;
}

/** Events of one member that wait for its answer, oldest first. */
interface Waiting {
  readonly events: { readonly event: Notification; readonly chars: number }[];
  chars: number;
  dropped: number;
  over: Promise<void>;
}

/**
 * Publishes the events of other members about their own rooms: a member with a fault must not report the end of a call
 * that goes on elsewhere. The announcement of a room can be late, so a member that has not announced it is asked, and
 * its later events wait meanwhile. Who has owned a room is believed for another minute.
 */
export class EventSenders {
  readonly #options: EventSendersOptions;
  readonly #refusals: LogThrottle;
  readonly #closing = new AbortController();
  /** By the member that sent them. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(options: EventSendersOptions) {
    this.#options = options;
    this.#refusals = new LogThrottle(options.clock);
  }

  /** Publishes an event of a member, now or after the earlier ones that wait. */
  take(node: string, event: Notification): void {
    const waiting = this.#waiting.get(node);
    if (waiting !== undefined) add(waiting, event);
    else if (this.#isTrusted(node, event)) this.#options.bus.publish(event, 'remote');
    else {
      const first: Waiting = { events: [], chars: 0, dropped: 0, over: Promise.resolve() };
      this.#waiting.set(node, first);
      add(first, event);
      first.over = this.#judge(node, first);
    }
  }

  /** Resolves once no event of the member waits; undefined if none does. */
  settled(node: string): Promise<void> | undefined {
    return this.#waiting.get(node)?.over;
  }

  close(): void {
    this.#closing.abort();
  }

  #isTrusted(node: string, { type, roomId }: Notification): boolean {
    return OF_FILES.has(type) || this.#options.rooms.directory.knewLately(node, roomId);
  }

  async #judge(node: string, waiting: Waiting): Promise<void> {
    const { bus, log } = this.#options;
    for (let next = waiting.events.shift(); next !== undefined; next = waiting.events.shift()) {
      const { event, chars } = next;
      waiting.chars -= chars;
      const isBelieved =
        this.#isTrusted(node, event) || (await this.#owns(node, event.roomId)) || this.#isOver(node, event);
      if (isBelieved) bus.publish(event, 'remote');
      else this.#refuse(node, event);
    }
    this.#waiting.delete(node);
    if (waiting.dropped > 0) log.warn('cluster.events_missed', { node, events: waiting.dropped });
  }

  /**
   * Returns whether the event is the start of a room that nobody else has. Its member says that the room has ended, and
   * its announcements were lost on a full link: its further events are believed too.
   */
  #isOver(node: string, { type, roomId }: Notification): boolean {
    const { directory } = this.#options.rooms;
    if (type !== 'roomCreated' || directory.find(roomId) !== undefined) return false;
    directory.had(node, roomId);

    return true;
  }

  /** Asks the member until it answers or its link is lost. */
  async #owns(node: string, roomId: string): Promise<boolean> {
    const { rooms, clock, isMember } = this.#options;
    const { signal } = this.#closing;
    for (;;) {
      const answer = await rooms.lookUp(node, roomId).then(
        (ref) => ref !== null,
        (error: unknown) => (UNANSWERED.has(codeOf(error)) ? undefined : false),
      );
      // By now its announcement may have arrived.
      if (answer === true || rooms.directory.knewLately(node, roomId)) return true;
      if (answer === false || signal.aborted || !isMember(node)) return false;
      await sleep(PAUSE_MS, { clock, signal });
    }
  }

  #refuse(node: string, { type, roomId }: Notification): void {
    const { rooms, log } = this.#options;
    const owner = rooms.directory.find(roomId)?.node;
    if (this.#refusals.allows(node)) log.warn('cluster.event_refused', { node, roomId, kind: type, owner });
  }
}

/** Lets an event wait, unless too many do. */
function add(waiting: Waiting, event: Notification): void {
  const share = event.type === 'dataMessage' ? DATA_SHARE : 1;
  const chars = charsOf(event);
  const isFull = waiting.events.length >= share * MAX_WAITING || waiting.chars + chars > share * MAX_WAITING_CHARS;
  if (isFull && waiting.events.length > 0) {
    waiting.dropped += 1;
    return;
  }
  waiting.events.push({ event, chars });
  waiting.chars += chars;
}

function charsOf(event: Notification): number {
  if (event.type !== 'dataMessage') return JSON.stringify(event).length;

  return JSON.stringify({ ...event, data: '' }).length + event.data.length;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
