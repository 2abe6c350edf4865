import { type CodecName, payloadFormat } from '@bloom/rtp';
import {
  codecLines,
  dataLines,
  extensionLines,
  type SentStream,
  type ServerTransport,
  sessionLines,
  sourceLines,
  transportLines,
} from './answer.js';
import type { AgreedExtensions } from './extensions.js';

const FEEDBACK = { audio: ['transport-cc'], video: ['ccm fir', 'nack', 'nack pli', 'transport-cc'] } as const;
const EXTENSIONS: AgreedExtensions = { mid: 1, transportCc: 2 };
/** Payload type of redundant sound (RFC 2198), as in browsers' offers. */
const RED = 63;

/** One m-line on which we send, or have sent. */
export interface OfferedSection {
  mid: string;
  kind: 'audio' | 'video';
  codec: CodecName;
  /** Offered after `codec`. */
  fallback?: CodecName | undefined;
  /** Offers the audio level (RFC 6464). */
  audioLevel: boolean;
  /** Offers to repeat sound after losses (RFC 2198). */
  redundancy?: boolean;
  /** Undefined: nothing is sent now. */
  stream: SentStream | undefined;
}

export interface OfferOptions extends ServerTransport {
  /** Decimal digits, constant throughout the session (RFC 8866 section 5.2). */
  sessionId: string;
  /** Increases with every offer. */
  version: number;
  /** Mid of the m-line for data channels, which comes first. */
  dataMid: string;
  /** In the order of their first offer; none may be left out later (RFC 3264 section 8). */
  sections: readonly OfferedSection[];
}

/** Returns an offer of the server with CRLF line ends: one ICE-lite transport, data channels, and what we send. */
export function writeOffer(options: OfferOptions): string {
  const { sections, dataMid } = options;
  const bundled = [dataMid, ...sections.map(({ mid }) => mid)];
  const lines = [
    ...sessionLines({ ...options, bundled, allowMixed: true }),
    ...dataLines('UDP/DTLS/SCTP', transportLines(dataMid, options, 'actpass')),
    ...sections.flatMap((section) => sectionLines(section, options)),
  ];

  return `${lines.join('\r\n')}\r\n`;
}

function sectionLines(section: OfferedSection, options: OfferOptions): string[] {
  const { mid, kind, codec, fallback, audioLevel, redundancy = false, stream } = section;
  const names = fallback === undefined ? [codec] : [codec, fallback];
  const red = redundancy ? { redPayloadType: RED } : {};
  const payloadTypes = names.flatMap((name) => {
    const { payloadType, rtxPayloadType } = payloadFormat(name).offered;
    return [payloadType, rtxPayloadType].filter((type) => type !== undefined);
  });
  if (redundancy) payloadTypes.unshift(RED);

  return [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${payloadTypes.join(' ')}`,
    ...transportLines(mid, options, 'actpass'),
    ...extensionLines({ ...EXTENSIONS, ...(audioLevel ? { audioLevel: 3 } : {}) }),
    stream === undefined ? 'a=inactive' : 'a=sendonly',
    ...(stream === undefined ? [] : [`a=msid:${stream.streamId} ${stream.trackId}`]),
    'a=rtcp-mux',
    ...(kind === 'video' ? ['a=rtcp-rsize'] : []),
    ...names.flatMap((name) => offeredLines(name, kind, red)),
    ...(stream === undefined ? [] : sourceLines(stream, payloadFormat(codec).offered.rtxPayloadType !== undefined)),
  ];
}

function offeredLines(name: CodecName, kind: OfferedSection['kind'], red: { redPayloadType?: number }): string[] {
  const { mimeType, clockRate, offered } = payloadFormat(name);
  const encodingName = mimeType.slice(mimeType.indexOf('/') + 1);

  return codecLines({ ...offered, ...red, name, encodingName, clockRate, feedback: FEEDBACK[kind] });
}
