import type { ActorRef, ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Clock } from '@bloom/time';
import type { InspectionProtocol } from '../protocol/wire.js';
import type { Redactor } from './redact.js';

/** What the inspector needs from its node. */
export interface Environment {
  /** Name of this node. */
  readonly self: string;
  readonly system: ActorSystem;
  readonly log: Log;
  readonly redactor: Redactor;
  readonly clock: Clock;
  /** Members with a live link, without this node. */
  readonly members: () => readonly string[];
  /** Returns the inspection actor of a member. */
  readonly remote: (node: string) => ActorRef<InspectionProtocol>;
  /** True when the actor or room is on this node. */
  readonly knowsActor: (id: string) => boolean;
  readonly knowsRoom: (room: string) => boolean;
  /** Returns the node of a room; undefined if there is no such room. Rejects with TIMEOUT while its node is cut off. */
  readonly ownerOf: (room: string) => Promise<string | undefined>;
}
