/** How many tracks flow in each codec, and how many of them are reduced, for Prometheus. */
import type { CodecTracks } from '@bloom/metrics';
import type { OutboundTrackStats, RoomMediaStats } from '@bloom/sfu';

const ORDER = ['l', 'm', 'h'];

/** Counts the tracks that flow at this moment. */
export function codecTracks(rooms: readonly RoomMediaStats[]): CodecTracks {
  const tracks: CodecTracks = { in: {}, out: {}, reduced: {} };
  for (const { inbound, outbound } of rooms.flatMap(({ transports }) => transports)) {
    // One track may have several streams, and two encodings.
    const flowing = inbound.filter(({ active }) => active);
    const published = new Map(
      flowing.map(({ trackId, fallback, codec }) => [`${fallback === true ? '+' : '-'}${trackId}`, codec]),
    );
    for (const codec of published.values()) add(tracks.in, codec);
    for (const track of outbound) {
      const { codec, variant, paused } = track;
      if (variant === undefined || paused === true) continue;
      add(tracks.out, codec);
      const reduction = reductionOf(track);
      const reduced = (tracks.reduced[codec] ??= { pictures: 0, size: 0 });
      if (reduction !== undefined) reduced[reduction] += 1;
    }
  }
  return tracks;
}

/** Returns what a lack of bandwidth takes from a track: its size, or only pictures per second. */
function reductionOf({ reason, layers, variant, target }: OutboundTrackStats): 'pictures' | 'size' | undefined {
  if (reason !== 'low_bandwidth') return undefined;
  const isSmaller = target !== undefined && ORDER.indexOf(variant ?? target) < ORDER.indexOf(target);
  if (isSmaller || (layers !== undefined && layers.spatial < layers.maxSpatial)) return 'size';
  return layers !== undefined && layers.temporal < layers.maxTemporal ? 'pictures' : undefined;
}

function add(counts: Record<string, number>, codec: string): void {
  counts[codec] = (counts[codec] ?? 0) + 1;
}
