import { useCallback, useRef, useState } from 'react';
import { type Problem, problemOf } from '../problem.js';

export interface Action {
  readonly busy: boolean;
  readonly problem: Problem | null;
  readonly dismiss: () => void;
  /** Resolves to true if the work was done. Does nothing while other work is running. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Returns the state of an action behind a button or form: whether it is running, and why it failed. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  // The button stays enabled while the work runs: a disabled button loses keyboard focus.
  const running = useRef(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    if (running.current) return false;
    running.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await work();
      return true;
    } catch (error) {
      setProblem(problemOf(error));
      return false;
    } finally {
      running.current = false;
      setBusy(false);
    }
  }, []);
  return { busy, problem, dismiss: useCallback(() => setProblem(null), []), run };
}
