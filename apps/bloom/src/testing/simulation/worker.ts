/** Runs histories for `npm run simulate`, in a process of its own for each core. */
import { KINDS } from './faults.js';
import { type History, planHistory, runHistory } from './history.js';
import { shrink } from './shrink.js';

/** What the runner sends. */
export interface Order {
  readonly seed: number;
  readonly nodes: number | undefined;
  readonly hasStandbys: boolean;
  /** Kinds of faults; drawn by the seed if undefined. */
  readonly faults: readonly string[] | undefined;
  /** Looks for a short history that still breaks a rule. */
  readonly shrinks: boolean;
}

/** What the runner is sent: progress of a search, then the history. */
export type Report = { readonly moves: number } | { readonly history: History };

// The runner says how to go on.
process.on('SIGINT', () => undefined);

process.on('message', ({ seed, nodes, hasStandbys, faults, shrinks }: Order) => {
  const send = (report: Report): void => void process.send?.(report);
  const run = async (): Promise<void> => {
    const unknown = faults?.find((kind) => !KINDS.includes(kind));
    if (unknown !== undefined) throw new Error(`there is no fault ${unknown}, only ${KINDS.join(', ')}`);
    const plan = planHistory(seed, nodes, hasStandbys);
    const history = await runHistory(faults === undefined ? plan : { ...plan, faults });
    send({ history: shrinks ? await shrink(history, (moves) => send({ moves })) : history });
  };
  run().catch((error: unknown) => {
    console.error(`seed ${seed}`, error);
    process.exit(1);
  });
});
