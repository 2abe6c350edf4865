import { ActorError, LOCAL, later, type ActorContext, type MessageOf } from '@bloom/actors';
import { type Clock, inTime } from '@bloom/time';
import { done, refusals, refused } from '../outcome.js';
import type { Farewell } from './farewell.js';
import { ROOM_SHAPES, type RoomProtocol, type RoomRef } from './room-messages.js';

/** How long the former owner passes requests on: every member knows the new owner by then. */
const RELAY_MS = 10_000;
/**
 * How long a message waits until the room runs at its new owner. Callers wait 4 s, up to 0.7 s of it for the frozen
 * room: what they saw fail must not happen later.
 */
const WAIT_MS = 3_200;
/** How long people keep their media here until they have it at the new owner. */
const FAREWELL_MS = 8_000;
/** How long the new owner has to answer; shorter than callers wait for the room. */
const ANSWER_TIMEOUT_MS = 3_500;

type Context = ActorContext<RoomProtocol>;
type Message = MessageOf<RoomProtocol>;

interface RelayOptions {
  roomId: string;
  /** The new owner's node, if it is known. */
  node: string | undefined;
  target: Promise<RoomRef | undefined>;
  /** The people who have not gone over. */
  farewell: Farewell;
  /** Called when all of them have. */
  left: () => void;
  clock: Clock;
}

/** Passes on what still reaches a room that has moved to another node, in order. */
export class Relay {
  readonly #roomId: string;
  readonly #node: string | undefined;
  readonly #target: Promise<RoomRef | undefined>;
  readonly #farewell: Farewell;
  readonly #left: () => void;
  readonly #clock: Clock;

  /** `target`: resolves when the room runs at its new owner, as that of `Carry.given` does; rejects when it is lost. */
  constructor({ roomId, node, target, farewell, left, clock }: RelayOptions, context: Context) {
    this.#roomId = roomId;
    this.#node = node;
    this.#target = target;
    this.#farewell = farewell;
    this.#left = left;
    this.#clock = clock;
    if (farewell.isOver) left();
    else context.setTimer('farewell', FAREWELL_MS, { type: 'farewellOver' });
    target.then(
      (room) => {
        if (room === undefined) return void context.cast(context.self, { type: 'relayOver' });
        context.monitor(room, (down) => ({ type: 'relayDown', reason: down.reason }));
        context.setTimer('relay', RELAY_MS, { type: 'relayOver' });
        farewell.begin();
      },
      () => context.cast(context.self, { type: 'relayOver' }),
    );
  }

  /** Answers a message to the room. Reports of the room's own parts are dropped: those parts have ended. */
  take(message: Message, context: Context): unknown {
    const isOver = message.type === 'relayOver' || (message.type === 'relayDown' && message.reason !== 'noconnection');
    if (isOver) {
      // Before the actors of its peers end with the room's, which would close the websockets as after a failure.
      this.#farewell.end();
      return context.stop();
    }
    if (!this.#farewell.isOver && this.#farewell.take(message)) {
      return this.#farewell.isOver ? this.#left() : undefined;
    }
    // The former node stops, which is nothing to the room.
    if (message.type === 'deleteRoom' && message.why === 'node_closing') return done(null);
    if (message.type === 'attach') return later(this.#attach(message, context));

    if (message.type === 'fromData' && message.event.type === 'dataMessage') {
      const { peerId, label, to, data } = message.event;
      return this.#passOn({ type: 'lateData', peerId, label, to, data }, context);
    }
    if (message.type === 'lateData') return this.#passOn(message, context);

    return isCall(message) ? later(this.#call(message, context)) : undefined;
  }

  /** Clients sent this while the room was frozen, so its former node has not reported it. */
  #passOn(message: MessageOf<RoomProtocol, 'lateData'>, context: Context): void {
    this.#target.then((room) => room !== undefined && context.cast(room, message)).catch(() => {});
  }

  async #call(message: Message, context: Context): Promise<unknown> {
    try {
      const room = await this.#room();
      if (room !== undefined) return await context.call(room, message as never, ANSWER_TIMEOUT_MS);
    } catch (error) {
      if (hasEnded(error)) return refusals.roomNotFound(this.#roomId);
    }

    const where = this.#node ?? 'another node';
    return refused('OWNER_UNREACHABLE', `Room ${this.#roomId} has moved to ${where}, which is currently unreachable`);
  }

  /** Never settles when the new owner cannot be reached: a rejection would tell the client that the room has ended. */
  async #attach(message: Message, context: Context): Promise<unknown> {
    try {
      const room = await this.#room();
      if (room !== undefined) return await context.call(room, message as never, ANSWER_TIMEOUT_MS);
    } catch (error) {
      if (hasEnded(error)) throw error;
    }

    return new Promise(() => {});
  }

  /** Returns the room; undefined if it does not run in time. */
  #room(): Promise<RoomRef | undefined> {
    return inTime(this.#target, { timeoutMs: WAIT_MS, late: () => undefined, clock: this.#clock });
  }
}

function isCall({ type }: Message): boolean {
  return type !== 'socketDown' && ROOM_SHAPES[type] !== LOCAL;
}

function hasEnded(error: unknown): boolean {
  return !(error instanceof ActorError) || error.isFinal;
}
