import type { Log } from '@bloom/log';
import type { MediaDropCause, MediaRoomEvent } from '@bloom/sfu';
import { isPowerOfTwo } from '@bloom/time';

/** What a client's operator can do about dropped packets, by cause. */
const DROP_REMEDIES: Readonly<Record<MediaDropCause, string>> = {
  unknown_ssrc:
    'announce the stream with a=ssrc, send the mid header extension, or give each m-line its own payload types',
  unpublished: 'send only on m-lines that the answer marks recvonly',
  ended: 'stop sending tracks that the server has removed',
  unexpected_payload: 'send the payload types of the answer',
  unknown_rid: 'send the encodings of the answer (a=simulcast:recv), each packet with its rid; or only the first one',
  ssrc_changes: 'send each encoding from one SSRC',
  malformed_media: 'send RTP in the payload format of the negotiated codec',
  oversized: 'send packets of at most 1,200 bytes',
  unauthenticated: 'send SRTP with the keys of the last DTLS handshake, in SRTP_AES128_CM_HMAC_SHA1_80',
  too_many_streams: 'connect again, and keep the SSRC of a stream',
};

/** Encoder settings to change when pictures arrive but cannot be shown. */
const ENCODER_REMEDIES = {
  bFrames: 'set B-frames of its encoder to 0 (x264: bframes=0 or tune=zerolatency)',
  bareKeyframes:
    'send SPS and PPS before each keyframe (GStreamer: rtph264pay config-interval=-1; x264: repeat-headers=1), ' +
    'or, without simulcast, announce them in the offer as sprop-parameter-sets of at most 512 bytes',
} as const;

type EventOf<T extends MediaRoomEvent['type']> = Extract<MediaRoomEvent, { type: T }>;

/** Logs what clients send and nobody can see. */
export class MediaFaults {
  readonly #log: () => Log;
  /** Number of tracks with each fault so far. */
  readonly #unplayable = { bFrames: 0, bareKeyframes: 0 };

  /** `log`: returns the current logger, whose lines carry the request id. */
  constructor(log: () => Log) {
    this.#log = log;
  }

  dropped({ peerId, trackId, cause, packets }: EventOf<'mediaDropped'>): void {
    this.#log().warn('room.media_dropped', { peerId, trackId, cause, packets, fix: DROP_REMEDIES[cause] });
  }

  /** Logs occurrences 1, 2, 4, 8 and so on of each fault: a client can publish such tracks endlessly. */
  unplayable({ type, trackId }: EventOf<'bFrames' | 'bareKeyframes'>, peerId: string | undefined): void {
    this.#unplayable[type] += 1;
    if (!isPowerOfTwo(this.#unplayable[type])) return;
    const fix = ENCODER_REMEDIES[type];
    if (type === 'bFrames') this.#log().warn('room.track_b_frames', { peerId, trackId, fix });
    else this.#log().warn('room.track_bare_keyframes', { peerId, trackId, fix });
  }
}
