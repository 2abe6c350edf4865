/** A metrics report: counters, texts and nested objects under keys such as `room_id=<id>`. */
export interface ReportNode {
  [key: string]: unknown;
}

/** Counters that get an additional `<key>-per-second`. */
const RATED = new Set([
  'inbound-rtp.packets',
  'inbound-rtp.bytes_received',
  'inbound-rtp.markers_received',
  'outbound-rtp.packets',
  'outbound-rtp.bytes',
  'outbound-rtp.markers_sent',
  'outbound-rtp.paddings_sent',
  'ice.bytes_received',
  'ice.bytes_sent',
  'ice.packets_received',
  'ice.packets_sent',
]);

/** Client-supplied values, whose keys may look like ours. */
const METADATA = new Set(['endpoint.metadata', 'track.metadata']);

/** Nesting depth of a report: room, endpoint, track, RTX stream. */
const MAX_DEPTH = 6;

function isNode(value: unknown): value is ReportNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the report with rates derived from the previous one. A counter that is new or has decreased gets no rate.
 * Metadata is copied unchanged, whatever its keys.
 */
export function withRates(report: ReportNode, previous: ReportNode | undefined, elapsedMs: number): ReportNode {
  return elapsedMs > 0 ? rated(report, previous, { seconds: elapsedMs / 1000, depth: 0 }) : report;
}

function rated(
  report: ReportNode,
  previous: ReportNode | undefined,
  { seconds, depth }: { seconds: number; depth: number },
): ReportNode {
  const result: ReportNode = {};

  for (const [key, value] of Object.entries(report)) {
    const before = previous?.[key];

    if (isNode(value) && depth < MAX_DEPTH && !METADATA.has(key)) {
      result[key] = rated(value, isNode(before) ? before : undefined, { seconds, depth: depth + 1 });
      continue;
    }

    result[key] = value;
    if (RATED.has(key) && typeof value === 'number' && typeof before === 'number' && value >= before) {
      result[`${key}-per-second`] = (value - before) / seconds;
    }
  }

  return result;
}
