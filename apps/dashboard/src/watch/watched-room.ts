// The room of a link to watch lives in the hash of the address: `#watch=<id>`. It never reaches a server's log.

/** Returns the room whose stream an address shows, or undefined. Ids are letters, digits and hyphens. */
export function watchedRoom(hash: string): string | undefined {
  const id = new URLSearchParams(hash.replace(/^#/, '')).get('watch');
  return id !== null && /^[A-Za-z0-9-]+$/.test(id) ? id : undefined;
}

/** Formats a latency in tenths of a second; empty while unknown. */
export function latencyText(latencyMs: number | null): string {
  return latencyMs === null || latencyMs < 0 ? '' : `${(latencyMs / 1000).toFixed(1)} s behind`;
}
