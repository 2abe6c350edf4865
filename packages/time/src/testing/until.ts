/**
 * Waits in real time until `condition` holds, for what no clock can be passed into: sockets, processes, other nodes.
 * Resolves with the milliseconds that it took. Rejects with the source of the condition after `limitMs`.
 */
export async function until(condition: () => unknown, limitMs = 10_000): Promise<number> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > limitMs) throw new Error(`not so within ${limitMs} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return performance.now() - start;
}
