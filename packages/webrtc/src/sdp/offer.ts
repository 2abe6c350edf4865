/** The parts of an offer that a media server needs for its answer (RFC 8866, RFC 8829, RFC 8843). */

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

/** One payload type with its attributes from the m-line. */
export interface OfferedCodec {
  payloadType: number;
  /** Encoding name as offered. */
  encodingName: string;
  /** Encoding name in lower case, for comparison. */
  name: string;
  clockRate: number;
  /** Audio only. */
  channels?: number;
  /** Value of `a=fmtp`; empty without one. */
  parameters: string;
  /** `a=rtcp-fb` values of this payload type, including those for `*`. */
  feedback: readonly string[];
}

export interface OfferedExtension {
  id: number;
  uri: string;
}

/** A stream identified by its SSRC. `rtx` is the SSRC of the repair stream in its `FID` group. */
export interface OfferedSource {
  ssrc: number;
  rtx?: number;
}

export interface OfferedMedia {
  /** Unique within the offer. */
  mid: string;
  /** `other` means neither audio nor video. */
  kind: 'audio' | 'video' | 'other';
  /** True without media: refused by the offerer, outside the bundle, or neither audio nor video. */
  refused: boolean;
  /** True for data channels over the bundled transport (RFC 8841), which the answer may accept. */
  isData: boolean;
  /** Media type, transport protocol and formats of the m-line as offered, echoed in the answer. */
  type: string;
  protocol: string;
  formats: readonly string[];
  direction: Direction;
  /** Codecs in m-line order. */
  codecs: readonly OfferedCodec[];
  extensions: readonly OfferedExtension[];
  /** True if packets with one-byte and with two-byte header extensions may follow each other (RFC 8285 section 6). */
  allowsMixedExtensions: boolean;
  /** Rids to be sent, in the order of `a=simulcast`, or else of `a=rid`; empty without simulcast. */
  rids: readonly string[];
  /** Signalled media sources, excluding their RTX streams. */
  sources: readonly OfferedSource[];
  /** First part of `a=msid`; absent without one and for `-`. */
  streamId?: string;
  /** Second part of `a=msid`, if there is one. */
  msidTrackId?: string;
}

/** Parameters of the one bundled transport (RFC 8839, RFC 8842). */
export interface OfferedTransport {
  iceUfrag: string;
  icePwd: string;
  /** Algorithm in lower case, value in upper-case hex with colons. */
  fingerprint: { algorithm: string; value: string };
  /** `active` if the other side can only be the DTLS client, `passive`, of answers only, if it is the server. */
  setup: 'actpass' | 'active' | 'passive';
}

export interface SdpOffer {
  transport: OfferedTransport;
  extmapAllowMixed: boolean;
  media: readonly OfferedMedia[];
}

/** Limits checked before parsing. */
export interface SdpLimits {
  /** In UTF-16 code units. */
  maxLength: number;
  maxLines: number;
  maxLineLength: number;
  /**
   * Bound on the m-lines of a session: one is added for every track that was ever in the room. As many as fit into a
   * BUNDLE line, more than `maxLength` lets a browser offer. The signalling limits how many may publish.
   */
  maxMedia: number;
  /** Bound on the codecs, extensions, rids or sources of one m-line, each. */
  maxPerMedia: number;
}

export const DEFAULT_SDP_LIMITS: SdpLimits = {
  maxLength: 1024 * 1024,
  maxLines: 40_000,
  maxLineLength: 4096,
  maxMedia: 1000,
  maxPerMedia: 128,
};
