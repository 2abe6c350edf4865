// Hand-written offers, in which an attack controls everything.
import { randomBytes } from 'node:crypto';

export interface OfferedLine {
  readonly kind: 'audio' | 'video';
  readonly direction: 'sendonly' | 'recvonly' | 'inactive';
  /** Further lines of this m-line. */
  readonly extra?: readonly string[];
}

export interface OfferIdentity {
  readonly ufrag: string;
  readonly pwd: string;
  /** SHA-256, upper-case hex with colons. */
  readonly fingerprint: string;
}

const TRANSPORT_CC = 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01';

/** Returns new ICE credentials, as every ICE restart has. */
export function newCredentials(): { ufrag: string; pwd: string } {
  return { ufrag: randomBytes(3).toString('hex'), pwd: randomBytes(12).toString('hex') };
}

/** Returns the SSRC of the m-line `mid` in every offer of this file. */
export function ssrcOf(mid: number): number {
  return 1_000_000 + mid;
}

/** Returns an offer like a browser's, with one bundled transport; the mid of a line is its index. */
export function writeOffer(lines: readonly OfferedLine[], { ufrag, pwd, fingerprint }: OfferIdentity): string {
  return [
    'v=0',
    'o=- 1 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    `a=group:BUNDLE ${lines.map((_, mid) => mid).join(' ')}`,
    'a=extmap-allow-mixed',
    'a=msid-semantic: WMS',
    ...lines.flatMap(({ kind, direction, extra = [] }, mid) => [
      `m=${kind} 9 UDP/TLS/RTP/SAVPF ${kind === 'audio' ? 111 : '96 97'}`,
      'c=IN IP4 0.0.0.0',
      'a=rtcp:9 IN IP4 0.0.0.0',
      `a=ice-ufrag:${ufrag}`,
      `a=ice-pwd:${pwd}`,
      'a=ice-options:trickle',
      `a=fingerprint:sha-256 ${fingerprint}`,
      'a=setup:actpass',
      `a=mid:${mid}`,
      `a=extmap:3 ${TRANSPORT_CC}`,
      `a=${direction}`,
      'a=rtcp-mux',
      'a=rtcp-rsize',
      ...(kind === 'audio'
        ? ['a=rtpmap:111 opus/48000/2', 'a=rtcp-fb:111 transport-cc', 'a=fmtp:111 minptime=10;useinbandfec=1']
        : [
            'a=rtpmap:96 VP8/90000',
            'a=rtcp-fb:96 goog-remb',
            'a=rtcp-fb:96 transport-cc',
            'a=rtcp-fb:96 ccm fir',
            'a=rtcp-fb:96 nack',
            'a=rtcp-fb:96 nack pli',
            'a=rtpmap:97 rtx/90000',
            'a=fmtp:97 apt=96',
          ]),
      ...(direction === 'sendonly' ? [`a=msid:stream track${mid}`, `a=ssrc:${ssrcOf(mid)} cname:hostile`] : []),
      ...extra,
    ]),
    '',
  ].join('\r\n');
}
