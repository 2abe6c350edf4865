import type { Log } from '@bloom/log';
import type { NotificationBus } from '@bloom/notifications';
import type { Notification } from '@bloom/protocol';
import type { RoomRegistry } from '@bloom/rooms';
import { type Clock, LogThrottle, sleep } from '@bloom/time';

/** Pause before a member that has not answered is asked again. */
const PAUSE_MS = 1_000;
/** Errors of a question that the member may still answer. */
const UNANSWERED: ReadonlySet<string> = new Set(['TIMEOUT', 'MEMBER_SILENT']);
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

/**
 * Publishes the events of other members about their own rooms: a member with a fault must not report the end of a call
 * that goes on elsewhere. The announcement of a room can be late, so a member that has not announced it is asked, and
 * its later events wait meanwhile. Who has owned a room is believed for another minute.
 */
export class EventSenders {
  readonly #options: EventSendersOptions;
  readonly #refusals: LogThrottle;
  readonly #closing = new AbortController();
  /** Events that wait, by the member that sent them. */
  readonly #waiting = new Map<string, { readonly events: Notification[]; readonly over: Promise<void> }>();

  constructor(options: EventSendersOptions) {
    this.#options = options;
    this.#refusals = new LogThrottle(options.clock);
  }

  /** Publishes an event of a member, now or after the earlier ones that wait. */
  take(node: string, event: Notification): void {
    const waiting = this.#waiting.get(node);
    if (waiting !== undefined) waiting.events.push(event);
    else if (this.#isTrusted(node, event)) this.#options.bus.publish(event, 'remote');
    else {
      const events = [event];
      this.#waiting.set(node, { events, over: this.#judge(node, events) });
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

  async #judge(node: string, events: Notification[]): Promise<void> {
    const { bus } = this.#options;
    for (let event = events.shift(); event !== undefined; event = events.shift())
      if (this.#isTrusted(node, event) || (await this.#owns(node, event.roomId))) bus.publish(event, 'remote');
      else this.#refuse(node, event);
    this.#waiting.delete(node);
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

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
