import type { ChosenCodec } from './codecs.js';
import { type AgreedExtensions, EXTENSION_URIS } from './extensions.js';
import type { OfferedMedia, SdpOffer } from './offer.js';

/** Priority of the first host candidate: type 126, local preference 65535, component 1 (RFC 8445 section 5.1.2.1). */
const HOST_PRIORITY = 2_130_706_431;
/** Decrement of the local preference by one (RFC 8445 section 5.1.2.1). */
const LOCAL_PREFERENCE_STEP = 256;

/** Fits a message of 64 KiB with the longest header on a data channel. */
const MAX_FRAME_BYTES = 70 * 1_024;

/** Role of one offered m-line in the answer. */
export type AnswerRole =
  /**
   * Keeps the m-line without media. The port is never 0, because a browser would drop the transceiver. `rids` are the
   * encodings that may be sent later: a browser permanently drops those missing from an answer.
   */
  | { type: 'inactive'; rids?: readonly string[] }
  /** The client sends. `rids` are in offer order; empty without simulcast. */
  | { type: 'receive'; rids: readonly string[] }
  | ({ type: 'send' } & SentStream);

/** What we send on an m-line. The client's track event shows `streamId` and `trackId`. */
export interface SentStream {
  ssrc: number;
  rtxSsrc: number;
  cname: string;
  streamId: string;
  trackId: string;
}

export interface AnswerMedia {
  role: AnswerRole;
  /** null only for an inactive m-line without a known codec; the answer then echoes one of the offered codecs. */
  codec: ChosenCodec | null;
  /** Other codecs that we may send later without a new answer. */
  moreCodecs?: readonly ChosenCodec[];
  extensions: AgreedExtensions;
}

export interface AnswerOptions extends ServerTransport {
  offer: SdpOffer;
  /** Decimal digits, constant throughout the session (RFC 8866 section 5.2). */
  sessionId: string;
  /** Increases with every answer. */
  version: number;
  /** Accepts the data channel m-line. */
  data?: boolean;
  /** One entry per offered m-line, in the same order; ignored for refused m-lines. */
  media: readonly AnswerMedia[];
}

/** Returns the answer with CRLF line ends: the offer's m-lines, order and mids, and one ICE-lite transport. */
export function writeAnswer(options: AnswerOptions): string {
  const { offer } = options;
  const isAccepted = (media: OfferedMedia): boolean => options.data === true && media.isData;
  const bundled = offer.media.filter((media) => !media.refused || isAccepted(media)).map((media) => media.mid);
  const lines = sessionLines({ ...options, bundled, allowMixed: offer.extmapAllowMixed });
  offer.media.forEach((media, index) => {
    const answer = options.media[index];
    if (isAccepted(media)) return void lines.push(...dataSection(media, options));
    lines.push(...(media.refused || answer === undefined ? refuse(media) : section(media, answer, options)));
  });
  return `${lines.join('\r\n')}\r\n`;
}

/** Returns the lines before the first m-line. */
export function sessionLines(session: {
  sessionId: string;
  version: number;
  /** Mids. */
  bundled: readonly string[];
  allowMixed: boolean;
}): string[] {
  return [
    'v=0',
    `o=- ${session.sessionId} ${session.version} IN IP4 127.0.0.1`,
    's=-',
    't=0 0',
    ['a=group:BUNDLE', ...session.bundled].join(' '),
    ...(session.allowMixed ? ['a=extmap-allow-mixed'] : []),
    'a=ice-lite',
    'a=msid-semantic: WMS *',
  ];
}

/** Returns a refused m-line, which keeps its place with port 0 (RFC 8829 section 5.3.1). */
function refuse(media: OfferedMedia): string[] {
  return [
    `m=${media.type} 0 ${media.protocol} ${media.formats.join(' ')}`,
    'c=IN IP4 0.0.0.0',
    'a=inactive',
    `a=mid:${media.mid}`,
  ];
}

/** Addresses at which clients reach the server. */
interface HostAddresses {
  address: string;
  /** Address of the other IP family. */
  secondAddress?: string;
  /** Further addresses. */
  moreAddresses?: readonly string[];
  port: number;
}

/** Returns the values of the candidate attributes, preferred one first (RFC 8839 section 5.1). */
export function hostCandidates({ address, secondAddress, moreAddresses = [], port }: HostAddresses): string[] {
  const addresses = [address, ...(secondAddress === undefined ? [] : [secondAddress]), ...moreAddresses];
  return addresses.map(
    (each, i) => `candidate:${i + 1} 1 UDP ${HOST_PRIORITY - i * LOCAL_PREFERENCE_STEP} ${each} ${port} typ host`,
  );
}

function section(media: OfferedMedia, answer: AnswerMedia, options: AnswerOptions): string[] {
  const { role } = answer;
  const codecs = answer.codec === null ? [] : [answer.codec, ...(answer.moreCodecs ?? [])];
  const fallback = media.codecs[0];
  const formats =
    codecs.length === 0
      ? [fallback?.payloadType ?? media.formats[0]]
      : codecs.flatMap(({ redPayloadType, payloadType, rtxPayloadType }) =>
          [redPayloadType, payloadType, rtxPayloadType].filter((each) => each !== undefined),
        );
  return [
    `m=${media.type} 9 ${media.protocol} ${formats.join(' ')}`,
    ...transportLines(media.mid, options, 'passive'),
    ...extensionLines(answer.extensions),
    directionLine(role),
    ...(role.type === 'send' ? [`a=msid:${role.streamId} ${role.trackId}`] : []),
    'a=rtcp-mux',
    ...(media.kind === 'video' ? ['a=rtcp-rsize'] : []),
    ...(codecs.length === 0 ? echoedCodecLines(fallback) : codecs.flatMap(codecLines)),
    ...(role.type === 'send' ? [] : simulcastLines(role.rids ?? [])),
    ...(role.type === 'send' ? sourceLines(role, codecs[0]?.rtxPayloadType !== undefined) : []),
  ];
}

function dataSection({ mid, protocol }: OfferedMedia, options: AnswerOptions): string[] {
  return dataLines(protocol, transportLines(mid, options, 'passive'));
}

/** Returns an m-line for data channels. */
export function dataLines(protocol: string, transport: readonly string[]): string[] {
  return [
    `m=application 9 ${protocol} webrtc-datachannel`,
    ...transport,
    'a=sctp-port:5000',
    `a=max-message-size:${MAX_FRAME_BYTES}`,
  ];
}

/** The server's end of the one transport. */
export interface ServerTransport {
  ice: { ufrag: string; pwd: string };
  fingerprint: { algorithm: string; value: string };
  /** Host candidates, for clients that receive none by other means. */
  candidate?: HostAddresses;
}

export function transportLines(
  mid: string,
  { ice, fingerprint, candidate }: ServerTransport,
  setup: 'passive' | 'actpass',
): string[] {
  return [
    'c=IN IP4 0.0.0.0',
    `a=ice-ufrag:${ice.ufrag}`,
    `a=ice-pwd:${ice.pwd}`,
    'a=ice-options:trickle',
    ...(candidate === undefined
      ? []
      : [...hostCandidates(candidate).map((each) => `a=${each}`), 'a=end-of-candidates']),
    `a=fingerprint:${fingerprint.algorithm} ${fingerprint.value}`,
    `a=setup:${setup}`,
    `a=mid:${mid}`,
  ];
}

function directionLine(role: AnswerRole): string {
  if (role.type === 'receive') return 'a=recvonly';
  return role.type === 'send' ? 'a=sendonly' : 'a=inactive';
}

/** Writes no attributes: `vad=on` is the default for audio levels (RFC 6464 section 4), and aiortc cannot parse it. */
export function extensionLines(extensions: AgreedExtensions): string[] {
  return (Object.keys(EXTENSION_URIS) as (keyof AgreedExtensions)[])
    .filter((name) => extensions[name] !== undefined)
    .map((name) => `a=extmap:${extensions[name]} ${EXTENSION_URIS[name]}`);
}

export function codecLines(codec: ChosenCodec): string[] {
  const { payloadType, rtxPayloadType, redPayloadType } = codec;
  const channels = codec.channels === undefined ? '' : `/${codec.channels}`;
  return [
    ...(redPayloadType === undefined
      ? []
      : [
          `a=rtpmap:${redPayloadType} red/${codec.clockRate}${channels}`,
          `a=fmtp:${redPayloadType} ${payloadType}/${payloadType}`,
        ]),
    `a=rtpmap:${payloadType} ${codec.encodingName}/${codec.clockRate}${channels}`,
    ...codec.feedback.map((value) => `a=rtcp-fb:${payloadType} ${value}`),
    ...(codec.parameters === '' ? [] : [`a=fmtp:${payloadType} ${codec.parameters}`]),
    ...(rtxPayloadType === undefined
      ? []
      : [`a=rtpmap:${rtxPayloadType} rtx/${codec.clockRate}`, `a=fmtp:${rtxPayloadType} apt=${payloadType}`]),
  ];
}

function echoedCodecLines(codec: OfferedMedia['codecs'][number] | undefined): string[] {
  if (codec === undefined) return [];
  const channels = codec.channels === undefined ? '' : `/${codec.channels}`;
  return [
    `a=rtpmap:${codec.payloadType} ${codec.encodingName}/${codec.clockRate}${channels}`,
    ...(codec.parameters === '' ? [] : [`a=fmtp:${codec.payloadType} ${codec.parameters}`]),
  ];
}

function simulcastLines(rids: readonly string[]): string[] {
  if (rids.length === 0) return [];
  return [...rids.map((rid) => `a=rid:${rid} recv`), `a=simulcast:recv ${rids.join(';')}`];
}

export function sourceLines({ ssrc, rtxSsrc, cname }: SentStream, withRtx: boolean): string[] {
  if (!withRtx) return [`a=ssrc:${ssrc} cname:${cname}`];
  return [`a=ssrc-group:FID ${ssrc} ${rtxSsrc}`, `a=ssrc:${ssrc} cname:${cname}`, `a=ssrc:${rtxSsrc} cname:${cname}`];
}
