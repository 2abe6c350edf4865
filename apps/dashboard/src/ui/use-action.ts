import { useCallback, useRef, useState } from 'react';
import { type Problem, problemOf } from '../problem.js';

export interface Action {
  readonly busy: boolean;
  readonly problem: Problem | null;
  readonly dismiss: () => void;
  /** Resolves to true when the work was done; does nothing while other work is under way. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Returns the state of what a person does with a button or a form: whether it is under way, and why it failed. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  // A button stays enabled meanwhile: one that is disabled loses the focus of the keyboard.
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
