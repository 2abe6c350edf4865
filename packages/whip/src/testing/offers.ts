/** Offers as real clients send them, reduced to what a server reads. */

const FINGERPRINT = Array.from({ length: 32 }, (_, index) => index.toString(16).padStart(2, '0').toUpperCase()).join(
  ':',
);
const TRANSPORT = [
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  `a=fingerprint:sha-256 ${FINGERPRINT}`,
  'a=setup:actpass',
];
const CHROMIUM_EXTENSIONS = [
  'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
  'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
  'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
];

function offer(lines: readonly string[], mids = '0 1'): string {
  return `${['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 't=0 0', `a=group:BUNDLE ${mids}`, ...lines].join('\r\n')}\r\n`;
}

const opus = (mid: string, direction: string) => [
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  ...TRANSPORT,
  `a=mid:${mid}`,
  `a=${direction}`,
  'a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level vad=on',
  'a=rtpmap:111 opus/48000/2',
  'a=rtcp-mux',
];
const video = (mid: string, direction: string, more: readonly string[] = []) => [
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103',
  ...TRANSPORT,
  `a=mid:${mid}`,
  `a=${direction}`,
  'a=rtpmap:96 VP8/90000',
  'a=rtcp-fb:96 nack pli',
  'a=rtpmap:97 rtx/90000',
  'a=fmtp:97 apt=96',
  'a=rtpmap:102 H264/90000',
  'a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
  'a=rtpmap:103 rtx/90000',
  'a=fmtp:103 apt=102',
  'a=rtcp-mux',
  ...more,
];

export const offers = {
  chromium: offer([...opus('0', 'sendonly'), ...video('1', 'sendonly', CHROMIUM_EXTENSIONS)]),
  simulcast: offer([
    ...opus('0', 'sendonly'),
    ...video('1', 'sendonly', [
      ...CHROMIUM_EXTENSIONS,
      'a=rid:l send',
      'a=rid:m send',
      'a=rid:h send',
      'a=simulcast:send l;m;h',
    ]),
  ]),
  foreignRids: offer([
    ...opus('0', 'sendonly'),
    ...video('1', 'sendonly', [...CHROMIUM_EXTENSIONS, 'a=rid:0 send', 'a=rid:1 send', 'a=simulcast:send 0;1']),
  ]),
  /** As libdatachannel writes it: mids are names, the fingerprint is at session level, H.264 only. */
  obs: offer(
    [
      'a=msid-semantic:WMS *',
      'a=ice-options:ice2,trickle',
      ...TRANSPORT,
      'm=audio 9 UDP/TLS/RTP/SAVPF 111',
      'a=mid:audio',
      'a=sendonly',
      'a=ssrc:1 cname:obs',
      'a=msid:obs audio',
      'a=rtcp-mux',
      'a=rtpmap:111 opus/48000/2',
      'a=fmtp:111 minptime=10;maxaveragebitrate=96000;stereo=1;sprop-stereo=1;useinbandfec=1',
      'm=video 9 UDP/TLS/RTP/SAVPF 96',
      'a=mid:video',
      'a=sendonly',
      'a=ssrc:2 cname:obs',
      'a=rtcp-mux',
      'a=rtpmap:96 H264/90000',
      'a=rtcp-fb:96 nack',
      'a=rtcp-fb:96 nack pli',
      'a=fmtp:96 profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1',
    ],
    'audio video',
  ),
  viewer: offer([...opus('0', 'recvonly'), ...video('1', 'recvonly', CHROMIUM_EXTENSIONS)]),
  pictureOnly: offer(video('0', 'recvonly'), '0'),
} as const;
