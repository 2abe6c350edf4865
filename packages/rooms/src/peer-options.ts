/** Whether the peer may offer simulcast, by what the caller sent; `undefined` when the options are malformed; null counts as absent. */
export function simulcastOption(options: unknown): boolean | undefined {
  if (options === undefined || options === null) return true;
  if (typeof options !== 'object' || Array.isArray(options)) return undefined;
  const value = (options as Record<string, unknown>)['enableSimulcast'] ?? true;

  return typeof value === 'boolean' ? value : undefined;
}
