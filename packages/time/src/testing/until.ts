/**
 * Waits in real time until `condition` holds, for things that take no clock: sockets, processes, other nodes. Resolves
 * with the elapsed milliseconds. Rejects with the condition's source code after `limitMs`.
 */
export async function until(condition: () => unknown, limitMs = 10_000): Promise<number> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > limitMs) throw new Error(`not so within ${limitMs} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return performance.now() - start;
}
