import { describe, expect, test } from '@jest/globals';
import { type FixtureName, readOffer } from './fixtures/read.js';
import type { AnswerRole } from './answer.js';
import type { SdpOffer } from './offer.js';
import {
  type AnswerMedia,
  chooseExtensions,
  choosePublishedCodec,
  chooseReceivedCodec,
  parseOffer,
  writeAnswer,
} from '../index.js';

const VALUE = Array.from({ length: 32 }, () => 'AB').join(':');
const send = (n: number): AnswerRole => ({
  type: 'send',
  ssrc: n,
  rtxSsrc: n + 1,
  cname: 'bloom',
  streamId: `stream${n}`,
  trackId: `track${n}`,
});

function answerTo(offer: SdpOffer, roles: Record<string, AnswerRole>): string {
  return writeAnswer({
    offer,
    sessionId: '42',
    version: 7,
    ice: { ufrag: 'ufrg', pwd: 'p'.repeat(24) },
    fingerprint: { algorithm: 'sha-256', value: VALUE },
    media: offer.media.map((media): AnswerMedia => {
      const role = roles[media.mid] ?? { type: 'inactive' };
      const codec =
        role.type === 'receive'
          ? choosePublishedCodec(media, null)
          : chooseReceivedCodec(media, media.kind === 'audio' ? 'opus' : 'vp8');
      return { role, codec, extensions: chooseExtensions(media, { audioLevel: true }) };
    }),
  });
}

const transportLines = (mid: string) => [
  'c=IN IP4 0.0.0.0',
  'a=ice-ufrag:ufrg',
  `a=ice-pwd:${'p'.repeat(24)}`,
  'a=ice-options:trickle',
  `a=fingerprint:sha-256 ${VALUE}`,
  'a=setup:passive',
  `a=mid:${mid}`,
];

describe('an answer', () => {
  test('puts redundant sound first for a client that prefers it', () => {
    const preferring = readOffer('chromium-audio-video').replaceAll(' 111 63 ', ' 63 111 ');
    const answer = answerTo(parseOffer(preferring), { 0: { type: 'receive', rids: [] }, 2: send(1000) });
    expect(answer.match(/m=audio 9 UDP\/TLS\/RTP\/SAVPF 63 111\r\n/g)).toHaveLength(2);
    expect(answer).toContain(
      ['a=rtpmap:63 red/48000/2', 'a=fmtp:63 111/111', 'a=rtpmap:111 opus/48000/2'].join('\r\n'),
    );
  });

  test('writes exactly these lines for audio in, video in, audio out and an inactive video slot', () => {
    const offer = parseOffer(readOffer('chromium-audio-video'));
    const answer = answerTo(offer, {
      0: { type: 'receive', rids: [] },
      1: { type: 'receive', rids: [] },
      2: send(1000),
    });
    expect(answer).toBe(
      [
        'v=0',
        'o=- 42 7 IN IP4 127.0.0.1',
        's=-',
        't=0 0',
        'a=group:BUNDLE 0 1 2 3',
        'a=extmap-allow-mixed',
        'a=ice-lite',
        'a=msid-semantic: WMS *',
        'm=audio 9 UDP/TLS/RTP/SAVPF 111',
        ...transportLines('0'),
        'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
        'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
        'a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level',
        'a=recvonly',
        'a=rtcp-mux',
        'a=rtpmap:111 opus/48000/2',
        'a=rtcp-fb:111 transport-cc',
        'a=fmtp:111 minptime=10;useinbandfec=1',
        'm=video 9 UDP/TLS/RTP/SAVPF 96 97',
        ...transportLines('1'),
        'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
        'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
        'a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
        'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
        'a=recvonly',
        'a=rtcp-mux',
        'a=rtcp-rsize',
        'a=rtpmap:96 VP8/90000',
        'a=rtcp-fb:96 ccm fir',
        'a=rtcp-fb:96 nack',
        'a=rtcp-fb:96 nack pli',
        'a=rtcp-fb:96 transport-cc',
        'a=rtpmap:97 rtx/90000',
        'a=fmtp:97 apt=96',
        'm=audio 9 UDP/TLS/RTP/SAVPF 111',
        ...transportLines('2'),
        'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
        'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
        'a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level',
        'a=sendonly',
        'a=msid:stream1000 track1000',
        'a=rtcp-mux',
        'a=rtpmap:111 opus/48000/2',
        'a=rtcp-fb:111 transport-cc',
        'a=fmtp:111 minptime=10;useinbandfec=1',
        'a=ssrc:1000 cname:bloom',
        'm=video 9 UDP/TLS/RTP/SAVPF 96 97',
        ...transportLines('3'),
        'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
        'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
        'a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
        'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
        'a=inactive',
        'a=rtcp-mux',
        'a=rtcp-rsize',
        'a=rtpmap:96 VP8/90000',
        'a=rtcp-fb:96 ccm fir',
        'a=rtcp-fb:96 nack',
        'a=rtcp-fb:96 nack pli',
        'a=rtcp-fb:96 transport-cc',
        'a=rtpmap:97 rtx/90000',
        'a=fmtp:97 apt=96',
        '',
      ].join('\r\n'),
    );
  });

  test('receives simulcast with one rid line per offered rid, in offer order', () => {
    const offer = parseOffer(readOffer('chromium-simulcast'));
    const answer = answerTo(offer, { 0: { type: 'receive', rids: ['l', 'm', 'h'] } });
    expect(answer).toContain('a=rid:l recv\r\na=rid:m recv\r\na=rid:h recv\r\na=simulcast:recv l;m;h\r\n');
    expect(answer.match(/a=simulcast/g)).toHaveLength(1);
  });

  test('sends video with both SSRCs in one FID group', () => {
    const offer = parseOffer(readOffer('chromium-receive-only'));
    expect(answerTo(offer, { 1: send(7) })).toContain(
      'a=ssrc-group:FID 7 8\r\na=ssrc:7 cname:bloom\r\na=ssrc:8 cname:bloom\r\n',
    );
  });

  test.each<FixtureName>([
    'chromium-audio-video',
    'chromium-simulcast',
    'chromium-after-removal',
    'firefox-audio-video',
  ])('keeps the m-lines of %s in order, all bundled and none with port 0', (name) => {
    const offer = parseOffer(readOffer(name));
    const answer = answerTo(offer, {});
    const mids = offer.media.map((media) => media.mid);
    expect([...answer.matchAll(/a=mid:(.*)\r\n/g)].map((match) => match[1])).toEqual(mids);
    expect(answer).toContain(`a=group:BUNDLE ${mids.join(' ')}\r\n`);
    expect(answer).not.toMatch(/^m=\w+ 0 /m);
    expect(answer.indexOf('a=ice-lite')).toBeLessThan(answer.indexOf('m='));
  });

  test('echoes an offered codec on an inactive m-line without a known codec', () => {
    const offer = parseOffer(readOffer('chromium-receive-only'));
    const media = offer.media.map((m) => ({
      ...m,
      codecs: m.codecs.filter((c) => c.name === 'pcmu' || c.name === 'vp9'),
    }));
    const answer = writeAnswer({
      offer: { ...offer, media },
      sessionId: '1',
      version: 1,
      ice: { ufrag: 'abcd', pwd: 'x'.repeat(22) },
      fingerprint: { algorithm: 'sha-256', value: VALUE },
      media: media.map(() => ({ role: { type: 'inactive' }, codec: null, extensions: {} })),
    });
    expect(answer).toContain('m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n');
    expect(answer).toContain('a=rtpmap:98 VP9/90000\r\na=fmtp:98 profile-id=0\r\n');
  });

  test('refuses an m-line of another kind in its place and excludes it from the bundle', () => {
    const text = readOffer('chromium-receive-only').replace('BUNDLE 0 1', 'BUNDLE 0 1 2');
    const data = 'm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\n';
    const answer = answerTo(parseOffer(text + data), {});
    expect(answer).toContain('a=group:BUNDLE 0 1\r\n');
    expect(answer).toContain(
      'm=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\na=mid:2\r\n',
    );
  });

  test('can be parsed again with the roles reversed', () => {
    const offer = parseOffer(readOffer('chromium-audio-video'));
    const answer = answerTo(offer, { 0: { type: 'receive', rids: [] }, 3: send(50) }).replaceAll('passive', 'active');
    const back = parseOffer(answer);
    expect(back.media.map((m) => m.direction)).toEqual(['recvonly', 'inactive', 'inactive', 'sendonly']);
    expect(back.media[3]).toMatchObject({ sources: [{ ssrc: 50, rtx: 51 }], streamId: 'stream50' });
  });
});
