import type { ActorSystem } from '@bloom/actors';
import type { Clock } from '@bloom/time';
import type { Asker, Inspector } from '../inspector/inspector.js';
import type { Redactor } from '../inspector/redact.js';
import type { AnswerOf, ParsedRequest } from '../protocol/types.js';
import { round } from './actor-lines.js';

/** Time that members have to report the hops of a request. */
const HOPS_TIMEOUT_MS = 2_000;

/** What the answers about the path of a request work with. */
export interface HopContext {
  self: string;
  system: ActorSystem;
  redactor: Redactor;
  inspector: () => Inspector;
  clock: Clock;
}

export function hopsAnswer(context: HopContext, { id, limit }: ParsedRequest<'hops'>): AnswerOf<'hops'> {
  return { id, now: context.clock.wall(), hops: ownHops(context, id, limit) };
}

/** Joins the hops of all members, in the order of this node's clock. */
export async function pathAnswer(
  context: HopContext,
  { id, limit }: ParsedRequest<'path'>,
  asker: Asker,
): Promise<AnswerOf<'path'>> {
  const timeoutMs = Math.min(HOPS_TIMEOUT_MS, asker.timeoutMs);
  const own = ownHops(context, id, limit);
  const { answers, unreachable } = await context.inspector().askMembers('hops', { id, limit }, { ...asker, timeoutMs });
  const all = [
    ...own,
    ...answers.flatMap(({ answer, answeredAt, tookMs }) => {
      // Converts to this node's clock, assuming that the answer was made halfway.
      const ahead = answer.now - (answeredAt - tookMs / 2);
      return answer.hops.map((hop) => ({ ...hop, at: hop.at - ahead }));
    }),
  ].toSorted((a, b) => a.at - b.at);
  const first = all[0]?.at ?? 0;
  const hops = all.slice(0, limit).map((hop) => ({ ...hop, offsetMs: round(hop.at - first) }));

  return { id, hops, unreachable };
}

function ownHops({ self, system, redactor }: HopContext, id: string, limit: number): AnswerOf<'hops'>['hops'] {
  return system
    .hops(id)
    .slice(-limit)
    .map(({ at, where, what, waitedMs, ranMs, omitted }) => ({
      // A face reports a hop when it has finished, so its time is the end.
      at: waitedMs === null ? at + (ranMs ?? 0) : at,
      node: self,
      actor: where,
      what: omitted === 0 ? redactor.text(what) : `${redactor.text(what)}, and ${omitted} more like the last`,
      waitedMs: waitedMs === null ? null : round(waitedMs),
      ranMs: waitedMs === null || ranMs === null ? null : round(ranMs),
    }));
}
