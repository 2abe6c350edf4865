/** What the webhook receiver of a room has not got when the room moves. */
import { flag, limited, list, object, text, type Shape } from '@bloom/actors';

/** Undelivered events, for the next node of a room. */
export interface WebhookBacklog {
  waiting: readonly Uint8Array[];
  /** The former node may still be sending another event, which precedes them. */
  inFlight: boolean;
}

/** The webhooks of the rooms of this node. */
export interface RoomWebhooks {
  /** Resolves when no event of a room is waiting or being sent. */
  settled(roomId: string): Promise<void>;
  /** Stops sending. Undefined, without effect: what is left cannot move now. */
  pause(roomId: string): WebhookBacklog | undefined;
  /** Goes on with the events of a room that stays. */
  resume(roomId: string): void;
  /**
   * Leaves what `pause` has returned to the next node. Resolves with the event that was in flight if that node has to
   * send it again, otherwise with null.
   */
  give(roomId: string): Promise<Uint8Array | null>;
  /** The former node of a room sends nothing more, and could not deliver `event`. */
  release(roomId: string, event: Uint8Array | null): void;
}

/** Webhooks of a node that sends none. */
export const NO_WEBHOOKS: RoomWebhooks = {
  settled: async () => undefined,
  pause: () => ({ waiting: [], inFlight: false }),
  resume: () => undefined,
  give: async () => null,
  release: () => undefined,
};

/** A backlog in the state of a room: events in Base64. */
export interface BacklogText {
  waiting: readonly string[];
  inFlight: boolean;
}

/** Equals the number of events that wait for one receiver, and the one in flight. */
const MAX_EVENTS = 1_001;
/** Most characters of one event. */
const MAX_EVENT = 2 * 1024 * 1024;

const isBase64 = (value: string): boolean => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value);
/** An event in Base64. */
export const eventText: Shape<string> = limited(text(MAX_EVENT), isBase64, 'Base64');

export const backlogText: Shape<BacklogText> = object({
  waiting: list(eventText, MAX_EVENTS),
  inFlight: flag,
} satisfies Record<keyof BacklogText, unknown>);

/** Returns undefined if nothing is left. */
export function encodeBacklog({ waiting, inFlight }: WebhookBacklog): BacklogText | undefined {
  if (waiting.length === 0 && !inFlight) return undefined;

  return { waiting: waiting.map(encodeEvent), inFlight };
}

export function decodeBacklog({ waiting, inFlight }: BacklogText): WebhookBacklog {
  return { waiting: waiting.map(decodeEvent), inFlight };
}

export function encodeEvent(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

export function decodeEvent(encoded: string): Uint8Array {
  return Buffer.from(encoded, 'base64');
}
