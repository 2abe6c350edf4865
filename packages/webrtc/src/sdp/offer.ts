/** The parts of an offer that a media server needs to answer it (RFC 8866, RFC 8829, RFC 8843). */

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

/** One payload type with its attributes on the m-line. */
export interface OfferedCodec {
  payloadType: number;
  /** Encoding name as offered (`VP8`). */
  encodingName: string;
  /** Encoding name in lower case, to compare. */
  name: string;
  clockRate: number;
  /** Audio only. */
  channels?: number;
  /** Text of `a=fmtp`, empty when there is none. */
  parameters: string;
  /** `a=rtcp-fb` values of this payload type, including those for `*`. */
  feedback: readonly string[];
}

export interface OfferedExtension {
  id: number;
  uri: string;
}

/** A stream identified by SSRC; `rtx` is the repair stream of its `FID` group. */
export interface OfferedSource {
  ssrc: number;
  rtx?: number;
}

export interface OfferedMedia {
  /** Unique within the offer. */
  mid: string;
  /** `other`: neither audio nor video. */
  kind: 'audio' | 'video' | 'other';
  /** No media: refused by the offerer itself, with a transport of its own that we do not open, or neither audio nor video. */
  refused: boolean;
  /** Data channels over the bundled transport (RFC 8841), which the answer may accept. */
  isData: boolean;
  /** Media type, transport protocol and formats of the m-line as offered, to be echoed. */
  type: string;
  protocol: string;
  formats: readonly string[];
  direction: Direction;
  /** In the order of the m-line. */
  codecs: readonly OfferedCodec[];
  extensions: readonly OfferedExtension[];
  /** Rids to be sent, in the order of `a=simulcast` (of `a=rid` where there is no such line); empty = no simulcast. */
  rids: readonly string[];
  /** Signalled media sources without their RTX streams. */
  sources: readonly OfferedSource[];
  /** First part of `a=msid`; absent for none and for `-`. */
  streamId?: string;
}

/** Parameters of the one bundled transport (RFC 8839, RFC 8842). */
export interface OfferedTransport {
  iceUfrag: string;
  icePwd: string;
  /** Algorithm in lower case, value in upper-case hex with colons. */
  fingerprint: { algorithm: string; value: string };
  /** Whether the offerer can be the DTLS client. */
  setup: 'actpass' | 'active';
}

export interface SdpOffer {
  transport: OfferedTransport;
  extmapAllowMixed: boolean;
  media: readonly OfferedMedia[];
}

/** Limits that are checked before anything is parsed. */
export interface SdpLimits {
  /** UTF-16 code units. */
  maxLength: number;
  maxLines: number;
  maxLineLength: number;
  /**
   * m-lines grow with every track that was ever in the room, so this bounds a session: as many as a BUNDLE line has room
   * for, which is more than `maxLength` lets a browser offer. The signalling limits how many of them may publish.
   */
  maxMedia: number;
  /** Codecs, extensions, rids or sources of one m-line. */
  maxPerMedia: number;
}

export const DEFAULT_SDP_LIMITS: SdpLimits = {
  maxLength: 1024 * 1024,
  maxLines: 40_000,
  maxLineLength: 4096,
  maxMedia: 1000,
  maxPerMedia: 128,
};
