/** Finds a short history that still breaks a rule. */
import { type History, type Plan, runHistory } from './history.js';

/** Longest search, in histories. */
const MAX_RUNS = 400;

/**
 * Takes moves away from a plan, large parts first and then one by one, as long as a rule stays broken (delta
 * debugging). `onRun` receives the number of moves that are left after each history.
 */
export async function shrink(broken: History, onRun: (moves: number) => void = () => undefined): Promise<History> {
  let shortest = broken;
  let runs = 0;
  for (let part = Math.ceil(broken.plan.moves.length / 2); part >= 1; part = part === 1 ? 0 : Math.ceil(part / 2)) {
    let from = 0;
    while (from < shortest.plan.moves.length && runs < MAX_RUNS) {
      const moves = shortest.plan.moves.toSpliced(from, part);
      const shorter: Plan = { ...shortest.plan, moves };
      const history = await runHistory(shorter);
      runs += 1;
      if (history.violations.length > 0) shortest = history;
      else from += part;
      onRun(shortest.plan.moves.length);
    }
  }
  return shortest;
}
