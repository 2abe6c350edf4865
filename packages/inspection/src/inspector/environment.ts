import type { ActorRef, ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { InspectionProtocol } from '../protocol/wire.js';
import type { Redactor } from './redact.js';

/** What every answer needs of its node. */
export interface Environment {
  /** Name of this node. */
  readonly self: string;
  readonly system: ActorSystem;
  readonly log: Log;
  readonly redactor: Redactor;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Members with a link now, without this node. */
  readonly members: () => readonly string[];
  /** The inspection actor of a member. */
  readonly remote: (node: string, name: string) => ActorRef<InspectionProtocol>;
  /** Whether somebody of this node is meant by an id of an actor, or a room. */
  readonly knowsActor: (id: string) => boolean;
  readonly knowsRoom: (room: string) => boolean;
}
