import type { Endpoint } from '@bloom/rooms';

/** Length of `connected`, in UTF-16 code units, beyond which metadata is left out. */
export const MAX_CONNECTED_LENGTH = 1024 * 1024;

/**
 * Returns the endpoints with as much metadata as a newcomer receives at once, smallest first. Participants with large
 * metadata are shown without it, so they can neither keep newcomers out nor displace the metadata of others.
 */
export function boundedMetadata(endpoints: readonly Endpoint[]): Endpoint[] {
  let left = MAX_CONNECTED_LENGTH;
  const shown = new Set<Endpoint>();
  const bySize = endpoints.map((endpoint) => ({ endpoint, length: lengthOf(endpoint) }));
  for (const { endpoint, length } of bySize.toSorted((a, b) => a.length - b.length)) {
    left -= length;
    if (left >= 0) shown.add(endpoint);
  }

  return endpoints.map((endpoint) => (shown.has(endpoint) ? endpoint : withoutMetadata(endpoint)));
}

/** Counts track metadata twice, because it is sent in the old and in the new form. */
function lengthOf({ metadata, tracks }: Endpoint): number {
  let length = textLength(metadata);
  for (const track of tracks) length += 2 * textLength(track.metadata);

  return length;
}

function textLength(metadata: unknown): number {
  return JSON.stringify(metadata ?? null).length;
}

function withoutMetadata(endpoint: Endpoint): Endpoint {
  return { ...endpoint, metadata: null, tracks: endpoint.tracks.map((track) => ({ ...track, metadata: null })) };
}
