import { faultOfStory, type Session } from './listeners.js';
import type { Subject } from './subject.js';
import type { Timeline } from './timeline.js';

/** Time in which the news of a room reaches every member and receiver. */
const NEWS_MS = 2_000;

/** A room whose id no client has chosen, so that no other room can have it. */
export interface KnownRoom {
  readonly id: string;
  readonly owner: Subject;
  /** The owner's process that has it. */
  readonly process: number;
  /** Time of the request that created it. */
  readonly sinceMs: number;
  readonly hasWebhook: boolean;
  /** True once a call has it, which deletes it at its end. */
  isHeld: boolean;
  /** Time of the first request to delete it. */
  deletedMs?: number;
  /** Time at which that request was granted. */
  endedMs?: number;
}

/** Returns the free rooms in which the rules judge a call: their owners have been calm since the creation. */
export function roomsForCalls(rooms: Iterable<KnownRoom>, nowMs: number): KnownRoom[] {
  return [...rooms].filter(
    ({ owner, sinceMs, isHeld, deletedMs }) => !isHeld && deletedMs === undefined && owner.wasCalm(sinceMs, nowMs),
  );
}

interface Witnesses {
  readonly sessions: readonly Session[];
  /** What the receiver of webhooks was sent, by room. */
  readonly webhooks: ReadonlyMap<string, readonly string[]>;
}

/** Checks that every healthy witness heard all of each room, once and in order. Returns the number of rooms checked. */
export function checkStories(rooms: Iterable<KnownRoom>, witnesses: Witnesses, timeline: Timeline): number {
  let checked = 0;
  for (const room of rooms) {
    if (room.endedMs === undefined) continue;
    const [sinceMs, untilMs] = [room.sinceMs, room.endedMs + NEWS_MS];
    if (!room.owner.wasCalm(sinceMs, untilMs)) continue;
    const present = witnesses.sessions.filter(
      (session) =>
        session.sinceMs <= sinceMs && session.untilMs >= untilMs && session.subject.wasCalm(sinceMs, untilMs),
    );
    const own = present.find(({ subject }) => subject === room.owner);
    if (own === undefined) continue;
    checked += 1;
    const story = own.heard.get(room.id) ?? [];
    const fault = faultOfStory(story);
    if (fault !== undefined) timeline.broken(`the story of room ${room.id} at ${room.owner.name} ${fault}`);
    const compare = (who: string, heard: readonly string[] = []): void => {
      if (heard.join() !== story.join())
        timeline.broken(
          `${who} heard ${heard.length} of ${story.length} events of room ${room.id}, or in another order`,
        );
    };
    for (const session of present) compare(`the subscriber of ${session.subject.name}`, session.heard.get(room.id));
    if (room.hasWebhook) compare('the receiver of webhooks', witnesses.webhooks.get(room.id));
  }
  return checked;
}
