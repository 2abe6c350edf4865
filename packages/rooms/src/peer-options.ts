import { PeerOptions } from './options.js';

const Given = PeerOptions.nullish();

/** Whether the peer may offer simulcast, by what the caller sent; `undefined` when the options are malformed; null counts as absent. */
export function simulcastOption(options: unknown): boolean | undefined {
  const result = Given.safeParse(options);

  return result.success ? (result.data?.enableSimulcast ?? true) : undefined;
}
