/** Formats a latency in tenths of a second; empty while unknown. */
export function latencyText(latencyMs: number | null): string {
  return latencyMs === null || latencyMs < 0 ? '' : `${(latencyMs / 1000).toFixed(1)} s behind`;
}
