import { Session } from 'node:inspector';
import { afterAll } from '@jest/globals';

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
}

/**
 * Returns a function that counts how often the functions, branches and loop bodies of the source file ending in `file`
 * run during `body`. This effort does not depend on the load of the machine. Call it at the top of a test file: only
 * functions that first run after the call have counters in their loops.
 */
export function operationsOf(file: string): (body: () => void) => number {
  const session = new Session();
  session.connect();
  const post = (method: string, parameters = {}): { result: readonly ScriptCoverage[] } => {
    let answer: unknown;
    session.post(method, parameters, (error, result) => {
      if (error) throw error;
      answer = result;
    });
    return answer as { result: readonly ScriptCoverage[] };
  };
  post('Profiler.enable');
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  afterAll(() => session.disconnect());

  return (body) => {
    // Reading the counters resets them.
    post('Profiler.takePreciseCoverage');
    body();
    const scripts = post('Profiler.takePreciseCoverage').result.filter(({ url }) => url.endsWith(file));
    if (scripts.length === 0) throw new Error(`nothing of ${file} ran`);
    const ranges = scripts.flatMap(({ functions }) => functions.flatMap((one) => one.ranges));
    return ranges.reduce((sum, { count }) => sum + count, 0);
  };
}
