/** Counters of one encoding of a track. */
export interface EncodingStats {
  readonly direction: 'sent' | 'received';
  readonly kind: 'audio' | 'video';
  /** Media type, such as `video/VP8`; null until the browser reports it. */
  readonly codec: string | null;
  readonly bytes: number;
  readonly packets: number;
  readonly packetsLost: number;
  readonly jitterMs: number;
  /** Size of the picture in pixels; 0 for audio. */
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
  /** Total time that the picture was frozen, in milliseconds (received video only). */
  readonly frozenMs: number;
  /** Loudness of the sound, from 0 to 1 on a linear scale; 0 for video, and where the browser does not measure it. */
  readonly audioLevel: number;
}

/** Counters of a track that is sent or received. */
export interface TrackStats extends EncodingStats {
  /** Id of the local or remote track. */
  readonly trackId: string;
  /** Those of the second encoding of a sent track; null if it has none. They stand still while nobody needs it. */
  readonly fallback: EncodingStats | null;
}

/** Counters of a call. */
export interface CallStats {
  readonly roundTripMs: number | null;
  readonly tracks: readonly TrackStats[];
}

type Entry = Readonly<Record<string, unknown>>;

/**
 * Reads a browser's counters (W3C Identifiers for WebRTC's Statistics API). Simulcast variants are summed. `trackOf`
 * returns the id of the track on an m-line, and the m-line of its second encoding.
 */
export function readStats(
  report: Pick<RTCStatsReport, 'forEach'> | undefined,
  trackOf: (mid: string) => readonly [id?: string | undefined, second?: string | null | undefined],
): CallStats {
  const byId = new Map<unknown, Entry>();
  report?.forEach((entry: Entry, id) => byId.set(id, entry));
  const encodings = new Map<string, EncodingStats>();
  let roundTripMs: number | null = null;

  for (const entry of byId.values()) {
    const { type } = entry;
    if (type === 'candidate-pair' && entry['nominated'] === true && entry['state'] === 'succeeded') {
      roundTripMs = number(entry['currentRoundTripTime']) * 1_000;
    }
    if (type !== 'inbound-rtp' && type !== 'outbound-rtp') continue;
    const received = type === 'inbound-rtp';
    const mid = String(entry['mid']);
    // The server reports what it has lost of a sent track.
    const heard = received ? entry : byId.get(entry['remoteId']);
    const sound = received ? entry : byId.get(entry['mediaSourceId']);
    const before = encodings.get(mid);
    encodings.set(mid, {
      direction: received ? 'received' : 'sent',
      kind: entry['kind'] === 'video' ? 'video' : 'audio',
      codec: (byId.get(entry['codecId'])?.['mimeType'] as string | undefined) ?? before?.codec ?? null,
      bytes: number(before?.bytes) + number(entry['bytesReceived'] ?? entry['bytesSent']),
      packets: number(before?.packets) + number(entry['packetsReceived'] ?? entry['packetsSent']),
      packetsLost: number(before?.packetsLost) + number(heard?.['packetsLost']),
      jitterMs: Math.max(number(before?.jitterMs), number(heard?.['jitter']) * 1_000),
      width: Math.max(number(before?.width), number(entry['frameWidth'])),
      height: Math.max(number(before?.height), number(entry['frameHeight'])),
      framesPerSecond: Math.max(number(before?.framesPerSecond), number(entry['framesPerSecond'])),
      frozenMs: number(entry['totalFreezesDuration']) * 1_000,
      audioLevel: number(sound?.['audioLevel']),
    });
  }
  const tracks = [...encodings].flatMap(([mid, encoding]) => {
    const [trackId, second] = trackOf(mid);
    return trackId === undefined ? [] : [{ trackId, ...encoding, fallback: encodings.get(second ?? '') ?? null }];
  });
  return { roundTripMs, tracks };
}

function number(value: unknown): number {
  return Number.isFinite(value) ? (value as number) : 0;
}
