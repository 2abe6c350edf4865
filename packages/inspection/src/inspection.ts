import { later, type Behaviour } from '@bloom/actors';
import { createMasker } from '@bloom/log';
import { RoomError } from '@bloom/rooms';
import { systemClock } from '@bloom/time';
import { actorAnswers, actorProducers } from './answers/actors.js';
import { findActor } from './answers/actor-lines.js';
import { captureProducers } from './answers/capture.js';
import { clusterAnswers, clusterProducers } from './answers/cluster.js';
import { FaultBook } from './answers/fault-book.js';
import { logAnswers, logProducers } from './answers/logs.js';
import { mediaAnswers } from './answers/media.js';
import { placementAnswers } from './answers/placement.js';
import { processAnswers, processProducers } from './answers/process.js';
import { ProcessFigures } from './process/figures.js';
import { INSPECTION_ACTOR, INSPECTION_SHAPES, type InspectionMode, type InspectionProtocol } from './protocol/wire.js';
import { InspectionError } from './errors.js';
import { sourcesOf, type InspectionParts } from './parts.js';
import type { Environment } from './inspector/environment.js';
import { Inspector } from './inspector/inspector.js';
import { Redactor } from './inspector/redact.js';

export interface Inspection {
  /** Also answers callers inside this process, such as the functions for Erlang. */
  readonly inspector: Inspector;
  /** Undoes the changes made by tools, ends all streams and stops answering. Idempotent. */
  close(): Promise<void>;
}

/** Mailbox limit; a tool only asks a few requests at a time. */
const MAX_WAITING = 1_000;

/** Answers tools under the registered name `inspection`. */
export function open(parts: InspectionParts, mode: InspectionMode): Inspection {
  const sources = sourcesOf(parts);
  const { system, remote, self, log, members, rooms, placement } = sources;
  const clock = sources.clock ?? systemClock;
  const redactor = new Redactor(createMasker(sources.secrets));
  const figures = parts.figures ?? new ProcessFigures();
  const unfollow = rooms.drainOrder.subscribe((event, reason) => sources.events.record(event, self, reason));
  const faults = new FaultBook({ log, clock, rooms });
  const environment: Environment = {
    self,
    system,
    log,
    redactor,
    clock,
    members,
    remote: (node) => remote.remote(node, INSPECTION_ACTOR, INSPECTION_SHAPES),
    knowsActor: (id) => findActor(system, id) !== undefined,
    knowsRoom: (room) => rooms.views().some(({ id }) => id === room),
    ownerOf: (room) => ownerOf(parts, room),
  };
  const inspector: Inspector = new Inspector({
    environment,
    mode,
    answers: {
      ...clusterAnswers({ sources, mode, inspector: () => inspector, figures, faults, clock }),
      ...actorAnswers({ self, system, redactor, inspector: () => inspector, faults, log, clock }),
      ...processAnswers({ sources, figures, clock }),
      ...mediaAnswers({ sources, redactor, inspector: () => inspector }),
      ...placementAnswers({ self, placement, inspector: () => inspector, clock }),
      ...logAnswers({ sources, redactor, faults, clock }),
    },
    producers: {
      ...captureProducers(sources),
      ...clusterProducers(sources),
      ...actorProducers({ self, system, redactor }),
      ...processProducers({ sources, figures, clock }),
      ...logProducers({ sources, redactor }),
    },
  });
  const actor = system.spawn(behaviour(inspector), {
    name: INSPECTION_ACTOR,
    mailbox: { limit: MAX_WAITING },
    permanent: true,
  });
  system.register(INSPECTION_ACTOR, actor);
  let closed: Promise<void> | undefined;

  return {
    inspector,
    close: () => {
      closed ??= (async () => {
        inspector.close();
        faults.close();
        unfollow();
        figures.close();
        await system.stop(actor);
      })();
      return closed;
    },
  };
}

async function ownerOf({ registry }: InspectionParts, room: string): Promise<string | undefined> {
  const place = await registry?.locate(room).catch((error: unknown) => {
    if (!(error instanceof RoomError)) throw error;
    if (error.code === 'ROOM_NOT_FOUND') return undefined;
    throw new InspectionError('TIMEOUT', error.message);
  });

  return place?.node;
}

/** Answers as soon as a result is ready, so that a slow request does not delay the next one. */
function behaviour(inspector: Inspector): Behaviour<InspectionProtocol, null> {
  return {
    kind: 'inspection',
    shapes: INSPECTION_SHAPES,
    init: () => null,
    handlers: {
      ask: (_state, message) => later(inspector.ask(message)),
      subscribe: (_state, message) => later(inspector.subscribe(message)),
      unsubscribe: (_state, { stream }) => inspector.unsubscribe(stream),
    },
  };
}
