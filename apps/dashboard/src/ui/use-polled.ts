import { useEffect, useState } from 'react';
import { type Problem, problemOf } from '../problem.js';

export interface Polled<T> {
  readonly value: T | undefined;
  readonly problem: Problem | null;
}

/**
 * Asks again `pauseMs` after each answer while the page is in front. The last value stays after a failed answer and is
 * removed when `key` changes.
 */
export function usePolled<T>(ask: () => Promise<T>, { key, pauseMs }: { key: string; pauseMs: number }): Polled<T> {
  const [state, setState] = useState<Polled<T> & { key: string }>({ key, value: undefined, problem: null });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let mounted = true;
    const poll = async (): Promise<void> => {
      if (document.visibilityState === 'visible') {
        try {
          const value = await ask();
          if (mounted) setState({ key, value, problem: null });
        } catch (error) {
          const problem = problemOf(error);
          if (mounted) setState((last) => ({ key, value: last.key === key ? last.value : undefined, problem }));
        }
      }
      if (mounted) timer = setTimeout(() => void poll(), pauseMs);
    };
    void poll();
    return () => {
      mounted = false;
      clearTimeout(timer);
    };
    // oxlint-disable-next-line react/exhaustive-deps -- the key stands for what the function asks
  }, [key, pauseMs]);
  return state.key === key ? state : { value: undefined, problem: null };
}
