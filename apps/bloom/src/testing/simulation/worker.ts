/** Runs histories for `npm run simulate`, in a process of its own for each core. */
import { type History, planHistory, runHistory } from './history.js';
import { shrink } from './shrink.js';

/** What the runner sends. */
export interface Order {
  readonly seed: number;
  readonly nodes: number | undefined;
  readonly hasStandbys: boolean;
  /** Looks for a short history that still breaks a rule. */
  readonly shrinks: boolean;
}

/** What the runner is sent: progress of a search, then the history. */
export type Report = { readonly moves: number } | { readonly history: History };

process.on('message', ({ seed, nodes, hasStandbys, shrinks }: Order) => {
  const send = (report: Report): void => void process.send?.(report);
  const run = async (): Promise<void> => {
    const history = await runHistory(planHistory(seed, nodes, hasStandbys));
    send({ history: shrinks ? await shrink(history, (moves) => send({ moves })) : history });
  };
  run().catch((error: unknown) => {
    console.error(`seed ${seed}`, error);
    process.exit(1);
  });
});
