import type { LoadSample, PlacementDecision, Verdict } from '@bloom/rooms';
import type { Clock } from '@bloom/time';
import type { Answers, Inspector } from '../inspector/inspector.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf } from '../protocol/types.js';
import type { PlacementSource } from '../sources.js';

const MEMBER_TIMEOUT_MS = 1_000;

type Sample = AnswerOf<'load'>['nodes'][number];
type Decision = AnswerOf<'placement-explain'>;

export interface PlacementAnswersOptions {
  self: string;
  placement: PlacementSource;
  inspector: () => Inspector;
  clock: Clock;
}

export function placementAnswers({ self, placement, inspector, clock }: PlacementAnswersOptions): Answers {
  return {
    load: async () => {
      const { samples, verdicts } = await placement.dryRun();
      return { at: clock.wall(), asked: self, nodes: samples.map((sample) => sampleOf(sample, verdicts)) };
    },

    'placement-explain': async ({ room }, asker) => {
      const own = placement.decisions().findLast(({ roomId }) => roomId === room);
      // The node that was asked to create the room, or that moved it, keeps the decision.
      const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, asker.timeoutMs);
      const { answers, silent } = asker.alone
        ? { answers: [], silent: [] }
        : await inspector().askMembers('placement-explain', { room }, { ...asker, timeoutMs });
      const all = [...(own === undefined ? [] : [decisionOf(own)]), ...answers.map(({ answer }) => answer)];
      const [latest] = all.toSorted((a, b) => b.at - a.at);
      if (latest === undefined && silent.length > 0) {
        const who = silent.join(' or ');
        throw new InspectionError(
          'TIMEOUT',
          `${who} may know where the room ${room} was placed but did not answer; no other node does`,
        );
      }
      if (latest === undefined) {
        throw new InspectionError('UNKNOWN_DECISION', `no node remembers where it placed the room ${room}`);
      }

      return latest;
    },

    'placement-dry-run': async () => ({ ...decisionOf(await placement.dryRun()), room: null }),
  };
}

function decisionOf(decision: PlacementDecision & { requestId?: string | null }): Decision {
  const { roomId, at, asked, chosen = null, samples, verdicts, conflicts, requestId = null } = decision;
  const { policy = 'least-loaded' } = decision;

  return {
    room: roomId,
    at,
    asked,
    chosen,
    policy,
    req: requestId,
    nodes: samples.map((sample) => sampleOf(sample, verdicts)),
    conflicts: [...conflicts],
  };
}

function sampleOf(sample: LoadSample, verdicts: ReadonlyMap<string, Verdict>): Sample {
  const { node, answeredInMs } = sample;
  const verdict = verdicts.get(node) ?? 'unknown';
  if (!('answer' in sample)) {
    const nothing = { forwardedTracks: null, rooms: null, draining: null };
    return { node, answeredInMs, ...nothing, failure: sample.failure, verdict };
  }
  const { forwardedTracks, rooms, draining } = sample.answer;

  return { node, answeredInMs, forwardedTracks, rooms, draining, failure: null, verdict };
}
