// Subscribers of the notifications of each node, and the rules for what they hear.
import { setTimeout as delay } from 'node:timers/promises';
import { BloomClient, type Notification } from '@bloom/server-sdk';
import type { Subject } from './subject.js';
import type { Timeline } from './timeline.js';

/** One subscription, from its confirmation to its loss. */
export interface Session {
  readonly subject: Subject;
  readonly sinceMs: number;
  untilMs: number;
  /** Notifications as JSON by room, in order. */
  readonly heard: Map<string, string[]>;
}

/** Keeps a subscription at each node, and a new one after each loss. */
export class Listeners {
  readonly sessions: Session[] = [];
  readonly #timeline: Timeline;
  readonly #end = new AbortController();
  readonly #reading: Promise<void>[];

  constructor(subjects: readonly Subject[], timeline: Timeline) {
    this.#timeline = timeline;
    this.#reading = subjects.map((subject) => this.#keep(subject));
  }

  async close(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#reading);
  }

  async #keep(subject: Subject): Promise<void> {
    const client = new BloomClient({ url: subject.node.url, token: 'development' });
    const { signal } = this.#end;
    while (!signal.aborted) {
      let session: Session | undefined;
      const onSubscribed = (): void => {
        session = { subject, sinceMs: this.#timeline.nowMs, untilMs: Infinity, heard: new Map() };
        this.sessions.push(session);
        this.#timeline.note(`${subject.name} subscribed`);
      };
      try {
        for await (const event of client.notifications({ onSubscribed, signal, silenceMs: 40_000 }))
          if (session !== undefined) hear(session, event);
      } catch (error) {
        if (session !== undefined) this.#timeline.note(`${subject.name} lost its subscriber: ${String(error)}`);
      }
      if (session !== undefined) session.untilMs = this.#timeline.nowMs;
      await delay(500);
    }
  }
}

function hear({ heard }: Session, event: Notification): void {
  const events = heard.get(event.roomId);
  if (events === undefined) heard.set(event.roomId, [JSON.stringify(event)]);
  else events.push(JSON.stringify(event));
}

/** Returns what is wrong with the order of the events of one room, or undefined. */
export function faultOfStory(events: readonly string[]): string | undefined {
  const notifications = events.map((text) => JSON.parse(text) as Notification);
  const end = notifications.findIndex(({ type }) => type === 'roomDeleted' || type === 'roomCrashed');
  if (notifications[0]?.type !== 'roomCreated') return `begins with ${notifications[0]?.type ?? 'nothing'}`;
  if (end !== -1 && end !== notifications.length - 1) return `has ${notifications[end + 1]?.type} after its end`;
  const connected = new Map<string, boolean>();
  for (const event of notifications) {
    if (event.type !== 'peerConnected' && event.type !== 'peerDisconnected') continue;
    const now = event.type === 'peerConnected';
    if ((connected.get(event.peerId) ?? false) === now) return `has ${event.type} of ${event.peerId} twice`;
    connected.set(event.peerId, now);
  }
  for (const [peerId, isConnected] of connected) if (isConnected && end !== -1) return `ends with ${peerId} connected`;
  return undefined;
}
