import type { ActorSystem, AnyRef } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Clock } from '@bloom/time';
import type { Asker } from '../inspector/inspector.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf, ParsedRequest } from '../protocol/types.js';
import { INSPECTION_ACTOR } from '../protocol/wire.js';
import { actorOf } from './actor-lines.js';
import type { FaultBook } from './fault-book.js';

/** What the changes of actors work with. */
export interface ActorChangeContext {
  system: ActorSystem;
  faults: FaultBook;
  log: Log;
  clock: Clock;
}

export function kill(
  { system, log }: ActorChangeContext,
  { id, reason }: ParsedRequest<'kill'>,
  { tool }: Asker,
): AnswerOf<'kill'> {
  const ref = changeable(system, id);
  log.warn('inspection.kill', { tool, actor: ref.path, reason });
  system.kill(ref, reason);

  return { path: ref.path, key: ref.key };
}

export function suspend(
  { system, faults, log, clock }: ActorChangeContext,
  { id, forMs }: ParsedRequest<'suspend'>,
  { tool }: Asker,
): AnswerOf<'suspend'> {
  const ref = changeable(system, id);
  log.warn('inspection.suspend', { tool, actor: ref.path, forMs });
  system.suspend(ref, forMs);
  faults.begin({ kind: 'suspend', target: ref.path, tool, forMs, ended: () => void system.resume(ref) });

  return { path: ref.path, key: ref.key, until: clock.wall() + forMs };
}

export function resume(
  { system, faults, log }: ActorChangeContext,
  { id }: ParsedRequest<'resume'>,
  { tool }: Asker,
): AnswerOf<'resume'> {
  const ref = actorOf(system, id);
  const wasSuspended = system.info(ref)?.status === 'suspended';
  if (wasSuspended) log.warn('inspection.resume', { tool, actor: ref.path });
  if (!faults.end('suspend', ref.path)) system.resume(ref);

  return { path: ref.path, key: ref.key, wasSuspended };
}

/**
 * Returns an actor that tools may change. Refuses the inspection actor itself: without it no change could be undone.
 * @throws InspectionError UNKNOWN_ACTOR, BAD_REQUEST
 */
function changeable(system: ActorSystem, id: string): AnyRef {
  const ref = actorOf(system, id);
  if (ref.key === system.whereis(INSPECTION_ACTOR)?.key) {
    throw new InspectionError('BAD_REQUEST', `${id} answers the tools themselves and is left alone`);
  }

  return ref;
}
