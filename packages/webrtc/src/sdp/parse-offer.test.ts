import { describe, expect, test } from '@jest/globals';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { type FixtureName, readOffer } from './fixtures/read.js';
import { parseAnswer, parseOffer } from '../index.js';
import { DEFAULT_SDP_LIMITS } from './offer.js';

const FIXTURES: FixtureName[] = [
  'chromium-audio-video',
  'chromium-receive-only',
  'chromium-simulcast',
  'chromium-after-removal',
  'firefox-audio-video',
];

const FINGERPRINT = Array.from({ length: 32 }, () => 'ab').join(':');
const HEAD = ['v=0', 'o=- 1 1 IN IP4 0.0.0.0', 's=-', 't=0 0', 'a=group:BUNDLE 0'];
const TRANSPORT = [
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  `a=fingerprint:sha-256 ${FINGERPRINT}`,
  'a=setup:actpass',
];
const AUDIO = ['m=audio 9 UDP/TLS/RTP/SAVPF 111', 'a=mid:0', 'a=sendonly', 'a=rtpmap:111 opus/48000/2'];
const offer = (...lines: string[]) => `${lines.join('\r\n')}\r\n`;

describe('sections that differ in their mid only', () => {
  const RECEIVE = ['m=video 9 UDP/TLS/RTP/SAVPF 96', 'a=recvonly', 'a=rtpmap:96 VP8/90000', 'a=extmap:3 urn:x'];
  const HEAD_OF_FOUR = [...HEAD.slice(0, 4), 'a=group:BUNDLE 0 1 2'];
  const section = (mid: string, ...more: string[]) => [...RECEIVE, mid, ...TRANSPORT, ...more];
  const unlike = (sdp: string) => {
    let sections = 0;
    return sdp.replaceAll(/^m=.*$/gm, (line) => `${line}\r\na=x-number:${(sections += 1)}`.replace('\r\r', '\r'));
  };
  const received = offer(...HEAD_OF_FOUR, ...['0', '1', '2', '3'].flatMap((mid) => section(`a=mid:${mid}`)));

  test.each([
    ['four', received],
    ['four without carriage returns', received.replaceAll('\r', '')],
    ['four without a last end of line', received.trimEnd()],
    ...FIXTURES.map((name) => [name, readOffer(name)]),
  ])('are read like others: %s', (_, sdp) => {
    expect(parseOffer(sdp)).toEqual(parseOffer(unlike(sdp)));
  });

  test('keep their own mids, and their places in the bundle', () => {
    expect(parseOffer(received).media.map(({ mid, refused }) => [mid, refused])).toEqual([
      ['0', false],
      ['1', false],
      ['2', false],
      ['3', true],
    ]);
  });

  test('count as lines in what is said of later ones', () => {
    const late = section('a=mid:9', 'a=ssrc:x');
    const sdp = offer(...HEAD_OF_FOUR, ...section('a=mid:0'), ...section('a=mid:1'), ...late);
    expect(() => parseOffer(sdp)).toThrow(`line ${sdp.split('\n').indexOf('a=ssrc:x\r') + 1}`);
  });

  test.each([
    ['the same mid twice', 'a=mid:0', 'repeats the mid 0'],
    ['no mid', 'a=x', 'has no usable a=mid'],
    ['an empty mid', 'a=mid:', 'has no usable a=mid'],
    ['a control character beside the mid', 'a=mid:1\u000b', 'a control character'],
  ])('are refused with %s', (_, line, message) => {
    expect(() => parseOffer(offer(...HEAD_OF_FOUR, ...section('a=mid:0'), ...section(line)))).toThrow(message);
  });

  test('are refused with a second mid', () => {
    const [first, twice] = [section('a=mid:0'), section('a=mid:1', 'a=mid:2')];
    expect(() => parseOffer(offer(...HEAD_OF_FOUR, ...first, ...twice))).toThrow('a second mid');
  });
});

describe('browser offers', () => {
  test("reads Chromium's m-lines with their mids, kinds and directions", () => {
    const { media, extmapAllowMixed } = parseOffer(readOffer('chromium-audio-video'));
    expect(media.map((m) => `${m.mid} ${m.kind} ${m.direction} ${m.refused}`)).toEqual([
      '0 audio sendonly false',
      '1 video sendonly false',
      '2 audio recvonly false',
      '3 video recvonly false',
    ]);
    expect(extmapAllowMixed).toBe(true);
  });

  test('reads one transport for all m-lines', () => {
    expect(parseOffer(readOffer('chromium-audio-video')).transport).toEqual({
      iceUfrag: '/kfX',
      icePwd: 'yqv9ojX/yWRwb1M8LIqnJaOS',
      setup: 'actpass',
      fingerprint: {
        algorithm: 'sha-256',
        value: 'A0:AC:43:57:9A:5C:57:91:EA:FB:5E:4D:66:CE:B8:66:BE:52:30:06:B2:13:B2:B2:8A:2E:18:AF:99:41:FF:43',
      },
    });
  });

  test('reads codecs in m-line order with parameters and feedback', () => {
    const [audio, video] = parseOffer(readOffer('chromium-audio-video')).media;
    expect(audio?.codecs[0]).toEqual({
      payloadType: 111,
      encodingName: 'opus',
      name: 'opus',
      clockRate: 48_000,
      channels: 2,
      parameters: 'minptime=10;useinbandfec=1',
      feedback: ['transport-cc'],
    });
    expect(video?.codecs.slice(0, 3).map((c) => `${c.payloadType} ${c.encodingName}`)).toEqual([
      '96 VP8',
      '97 rtx',
      '102 H264',
    ]);
    expect(video?.codecs[0]?.feedback).toEqual(['goog-remb', 'transport-cc', 'ccm fir', 'nack', 'nack pli']);
  });

  test('reads signalled sources with their RTX streams, and the stream and id of a track', () => {
    const [audio, video] = parseOffer(readOffer('chromium-audio-video')).media;
    expect(audio?.sources).toEqual([{ ssrc: 2836899468 }]);
    expect(video?.sources).toEqual([{ ssrc: 240821085, rtx: 1146043358 }]);
    expect(video?.streamId).toBe('4cb50e3a-1691-419a-89e7-09a7a3564321');
    expect(video?.msidTrackId).toBe('fb7af9b1-c9a3-43af-afbd-59ac1b3ddeb0');
  });

  test('reads the rids of a simulcast sender in offer order, including paused ones, and no sources', () => {
    const [first, second, slot] = parseOffer(readOffer('chromium-simulcast')).media;
    expect(first?.rids).toEqual(['l', 'm', 'h']);
    expect(second?.rids).toEqual(['l', 'm', 'h']);
    expect(slot?.rids).toEqual([]);
    expect(first?.sources).toEqual([]);
    expect(first?.streamId).toBeUndefined();
  });

  test('keeps the m-line of a removed track in its place', () => {
    const { media } = parseOffer(readOffer('chromium-after-removal'));
    expect(media.map((m) => `${m.mid} ${m.direction}`)).toEqual([
      '0 sendonly',
      '1 inactive',
      '2 recvonly',
      '3 recvonly',
      '4 recvonly',
    ]);
  });

  test('accepts a session-level fingerprint and port 0 of a bundle-only m-line', () => {
    const { media, transport } = parseOffer(readOffer('firefox-audio-video'));
    expect(transport.fingerprint.value.startsWith('12:DF')).toBe(true);
    expect(media.map((m) => m.refused)).toEqual([false, false]);
    expect(media[0]?.extensions).toContainEqual({ id: 2, uri: 'urn:ietf:params:rtp-hdrext:csrc-audio-level' });
  });
});

describe('the transport of an offer', () => {
  test('refuses an offer without ICE credentials', () => {
    expect(() => parseOffer(offer(...HEAD, ...AUDIO, ...TRANSPORT.slice(1)))).toThrow('no ICE credentials');
  });

  test('refuses an offer without a fingerprint', () => {
    expect(() => parseOffer(offer(...HEAD, ...AUDIO, ...TRANSPORT.filter((l) => !l.includes('fingerprint'))))).toThrow(
      'no certificate fingerprint',
    );
  });

  test('refuses a client that cannot be the DTLS client', () => {
    expect(() => parseOffer(offer(...HEAD, ...AUDIO, ...TRANSPORT.slice(0, 3), 'a=setup:passive'))).toThrow(
      'a=setup is passive',
    );
  });

  test('takes a passive answer, whose sender is the DTLS server', () => {
    const answer = offer(...HEAD, ...AUDIO, ...TRANSPORT.slice(0, 3), 'a=setup:passive');
    expect(parseAnswer(answer, DEFAULT_SDP_LIMITS).transport.setup).toBe('passive');
  });

  test('prefers SHA-256 to fingerprints of other algorithms and skips unknown ones', () => {
    const sha512 = `a=fingerprint:sha-512 ${Array.from({ length: 64 }, () => 'cd').join(':')}`;
    const { transport } = parseOffer(offer(...HEAD, ...AUDIO, 'a=fingerprint:md5 00', sha512, ...TRANSPORT));
    expect(transport.fingerprint).toEqual({ algorithm: 'sha-256', value: FINGERPRINT.toUpperCase() });
  });

  test('never shows a password in an error', () => {
    const bad = offer(...HEAD, ...AUDIO, 'a=ice-pwd:tooshort');
    expect(() => parseOffer(bad)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('tooshort') }),
    );
  });
});

describe('unusable offers', () => {
  test('names the offending line and its number', () => {
    const bad = offer(...HEAD, ...AUDIO, 'a=rtpmap:400 opus/48000');
    expect(() => parseOffer(bad)).toThrow('a payload type over 127 in line 10: a=rtpmap:400 opus/48000');
  });

  test.each([
    ['an empty text', ''],
    ['another first line', offer('s=-', ...AUDIO, ...TRANSPORT)],
    ['no m-line', offer(...HEAD, ...TRANSPORT)],
    ['an m-line without mid', offer(...HEAD, ...AUDIO.filter((l) => !l.includes('mid')), ...TRANSPORT)],
    ['a duplicate mid', offer(...HEAD, ...AUDIO, ...TRANSPORT, ...AUDIO, ...TRANSPORT)],
    ['a malformed m-line', offer(...HEAD, 'm=audio nine', ...AUDIO.slice(1), ...TRANSPORT)],
    ['a control character', offer(...HEAD, ...AUDIO, 'a=fmtp:111 x\ry', ...TRANSPORT)],
    ['a duplicate rid', offer(...HEAD, ...AUDIO, 'a=rid:l send', 'a=rid:l send', ...TRANSPORT)],
    ['an SSRC of more than 32 bits', offer(...HEAD, ...AUDIO, 'a=ssrc:4294967296 cname:x', ...TRANSPORT)],
    ['a duplicate extension id', offer(...HEAD, ...AUDIO, 'a=extmap:1 a', 'a=extmap:1 b', ...TRANSPORT)],
  ])('refuses %s', (_what, text) => {
    expect(() => parseOffer(text)).toThrow(expect.objectContaining({ code: 'INVALID_SDP' }));
  });

  test('marks an m-line of another kind or outside the bundle as refused', () => {
    const data = ['m=application 9 UDP/DTLS/SCTP webrtc-datachannel', 'a=mid:1'];
    const alone = ['m=audio 9 UDP/TLS/RTP/SAVPF 111', 'a=mid:2', 'a=rtpmap:111 opus/48000/2'];
    const { media } = parseOffer(offer(...HEAD, ...AUDIO, ...TRANSPORT, ...data, ...alone));
    expect(media.map((m) => m.refused)).toEqual([false, true, true]);
  });
});

describe('limits', () => {
  const small = { maxLength: 1000, maxLines: 20, maxLineLength: 200, maxMedia: 2, maxPerMedia: 3 };

  test.each([
    ['characters', 'x'.repeat(1001), 'characters'],
    ['lines', 'a=\n'.repeat(21), 'lines'],
    ['characters of a line', `a=${'x'.repeat(250)}`, '200 characters'],
    ['m-lines', offer('v=0', ...AUDIO, ...AUDIO, ...AUDIO), 'm-lines'],
    ['payload types', offer('v=0', 'm=audio 9 X 1 2 3 4'), 'more than 3'],
    ['extensions', offer('v=0', AUDIO[0] ?? '', ...[1, 2, 3, 4].map((n) => `a=extmap:${n} u${n}`)), 'more than 3'],
    ['rids', offer('v=0', AUDIO[0] ?? '', ...[1, 2, 3, 4].map((n) => `a=rid:${n} send`)), 'more than 3'],
    ['sources', offer('v=0', AUDIO[0] ?? '', ...[1, 2, 3, 4].map((n) => `a=ssrc:${n} cname:x`)), 'more than 3'],
    ['feedback', offer('v=0', AUDIO[0] ?? '', ...[1, 2, 3, 4].map((n) => `a=rtcp-fb:111 f${n}`)), 'more than 3'],
  ])('bounds the number of %s', (_what, text, message) => {
    expect(() => parseOffer(text, small)).toThrow(message);
  });
});

describe('garbage', () => {
  const originals = FIXTURES.map((name) => readOffer(name).split('\r\n'));
  const line = fc.oneof(
    fc.constantFrom(...new Set(originals.flat())),
    fc
      .tuple(fc.constantFrom('a=', 'm=', 'a=rid:', 'a=extmap:', 'a=ssrc-group:', 'a=simulcast:'), fc.string())
      .map((p) => p.join('')),
    fc.string({ unit: codePoint(fc), maxLength: 30 }),
  );
  const damaged = fc
    .tuple(
      fc.constantFrom(...originals),
      fc.array(fc.tuple(fc.nat(400), fc.nat(3), line), { minLength: 1, maxLength: 4 }),
    )
    .map(([lines, edits]) => {
      const copy = lines.slice(0, 120);
      for (const [at, remove, text] of edits) copy.splice(at % copy.length, remove, text);
      return copy.join('\r\n');
    });

  test('garbage yields an offer or INVALID_SDP and nothing else', () => {
    let runs = 0;
    let accepted = 0;
    fc.assert(
      fc.property(
        fc.oneof({ weight: 3, arbitrary: damaged }, { weight: 1, arbitrary: fc.string({ unit: codePoint(fc) }) }),
        (text) => {
          runs += 1;
          try {
            accepted += parseOffer(text).media.length > 0 ? 1 : 0;
          } catch (error) {
            expect(error).toMatchObject({ code: 'INVALID_SDP' });
          }
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
    // Most damage hits irrelevant lines, so the parser must not satisfy the property by refusing everything.
    expect(accepted).toBeGreaterThan(runs / 20);
  });
});
