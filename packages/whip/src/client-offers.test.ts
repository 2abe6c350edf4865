import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { PeerSession, SessionAction, SessionInput } from '@bloom/rooms';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { WhipError } from './errors.js';
import { createHttpSession } from './http-session.js';
import { acceptOffer } from './offer.js';
import { parseFragment } from './sdp-fragment.js';
import type { SessionAnswer, SessionRequest } from './session-message.js';

/** Offers of browsers, encoders and libraries, with addresses and credentials replaced. */
const folder = join(import.meta.dirname, 'testing', 'offers');
const offers = new Map(
  readdirSync(folder).map((file) => [
    file.replace(/\.sdp$/, ''),
    readFileSync(join(folder, file), 'utf8').replaceAll('\n', '\r\n'),
  ]),
);
const roleOf = (name: string): 'publish' | 'watch' => (name.endsWith('-watch') ? 'watch' : 'publish');

/** Opens a session with the offer and returns its answer. */
function opened(sdp: string, role: 'publish' | 'watch', videoCodec: 'h264' | null = null): SessionAnswer {
  let byte = 0;
  const session: PeerSession = createHttpSession({
    peerId: 'ann',
    client: 'http',
    videoCodec,
    enableSimulcast: true,
    publishes: ['audio', 'video'],
    endpoint: { address: '192.0.2.1', port: 50_000, fingerprint: { algorithm: 'sha-256', value: 'AB:CD' } },
    relay: { username: '1:ann', password: 'secret' },
    randomBytes: (n) => Uint8Array.from({ length: n }, () => (byte = (byte * 5 + 77) & 0xff)),
  });
  const actions: SessionAction[] = [];
  const feed = (input: SessionInput): void => {
    for (const action of session.handle(input)) {
      actions.push(action);
      if (action.type === 'negotiate') feed({ type: 'negotiated', generation: action.negotiation.generation });
    }
  };
  const request: SessionRequest = {
    type: 'offer',
    role: role === 'publish' ? { type: 'publish' } : { type: 'watch', source: { type: 'speaker' } },
    sdp,
  };
  feed({ type: 'clientEvent', text: JSON.stringify(request) });
  feed({ type: 'joined', endpoints: [] });
  const answer = actions.findLast((action) => action.type === 'send');
  if (answer?.type !== 'send') throw new Error('the session has not answered');
  return JSON.parse(answer.text) as SessionAnswer;
}

/** Returns the answer on one line: direction and codecs of each m-line, or the code of the refusal. */
function summary(answer: SessionAnswer): string {
  if (answer.type === 'refused') return answer.code;
  if (answer.type !== 'answer') return answer.type;
  const [, ...sections] = answer.sdp.split(/^m=/m);

  return sections
    .map((section) => {
      const names = [...section.matchAll(/^a=rtpmap:\d+ ([^/]+)/gm)].map(([, name = '']) => name.toLowerCase());
      const direction = /^a=(recvonly|sendonly|inactive)/m.exec(section)?.[1];
      const rids = /^a=simulcast:recv (\S+)/m.exec(section)?.[1];

      return [direction, ...names.filter((name) => name !== 'rtx'), ...(rids === undefined ? [] : [rids])].join(' ');
    })
    .join(', ');
}

const both = 'recvonly opus, recvonly vp8';
const h264 = 'recvonly opus, recvonly h264';
const h264First = 'recvonly h264, recvonly opus';
const vp8First = 'recvonly vp8, recvonly opus';
const seen = 'sendonly opus, sendonly vp8 h264';

describe('offers of real clients', () => {
  const expected: Readonly<Record<string, string>> = {
    'aiortc-watch': seen,
    'chromium-156-audio-only': 'recvonly opus',
    'chromium-156-h264-only': h264,
    'chromium-156-sendrecv-data': `${both}, inactive`,
    'chromium-156-simulcast': `${both} l;m;h`,
    'chromium-156-simulcast-numbers': `${both} 0;1;2`,
    'chromium-156-video-only-watch': 'sendonly vp8 h264 vp9 av1',
    'chromium-156-watch': `${seen} vp9 av1`,
    'encoder-aac': 'NO_CODEC',
    'encoder-audio-first-no-extensions': h264,
    'encoder-h265': 'recvonly h265',
    // It waits for the server to start the handshake.
    'ffmpeg-default': 'INVALID_OFFER',
    'ffmpeg-high-profile': 'NO_CODEC',
    'ffmpeg-publish': h264,
    'firefox-esr-audio-only': 'recvonly opus',
    'firefox-esr-sendrecv-data': `${both}, inactive`,
    'firefox-esr-simulcast': `${both} l;m;h`,
    'firefox-esr-simulcast-numbers': `${both} 0;1;2`,
    'firefox-esr-video-only-watch': 'sendonly vp8 vp9 av1',
    'firefox-esr-watch': 'sendonly opus, sendonly vp8 vp9 av1',
    'gstreamer-h264-publish': h264First,
    'gstreamer-rs-whipclientsink': h264First,
    'gstreamer-vp8-publish': vp8First,
    'gstreamer-watch': 'sendonly vp8, sendonly opus',
    'ios-12-sendrecv': h264,
    // H.264 without a profile means plain baseline, which browsers need not decode.
    'janus-no-profile': 'NO_CODEC',
    'libdatachannel-data': `${h264}, inactive`,
    'livekit-plain-baseline': 'NO_CODEC',
    'obs-30-1-publish': h264,
    'obs-30-2-publish': h264,
    'obs-32-av1': 'recvonly opus, recvonly av1',
    'obs-32-hevc': 'recvonly opus, recvonly h265',
    'obs-32-simulcast': `${h264} 0;1;2`,
    'obs-webrtc-rs-publish': h264First,
    'pion-publish': vp8First,
    'pion-watch': 'sendonly vp8 h264 vp9 av1, sendonly opus',
    'safari-publish': h264,
    'safari-watch': seen,
    'unity-h264': h264First,
    'vendor-sha-512-lf': 'recvonly h264',
    'werift-watch': 'sendonly opus, sendonly vp8',
  };

  test.each([...offers])('answers the offer of %s', (name, sdp) => {
    const answer = opened(sdp, roleOf(name));
    expect({ name, answer: summary(answer) }).toEqual({ name, answer: expected[name] ?? both });
    if (answer.type !== 'answer') return;
    const mids = (text: string): string[] => [...text.matchAll(/^a=mid:(\S+)/gm)].map(([, mid = '']) => mid);
    expect(mids(answer.sdp)).toEqual(mids(sdp));
    // The same offer with LF line endings gets the same answer.
    expect(summary(opened(sdp.replaceAll('\r', ''), roleOf(name)))).toBe(summary(answer));
  });
});

test.each([
  ['obs-32-av1', 'AV1'],
  ['obs-32-hevc', 'H265'],
])('refuses %s in a room for streams and recordings with a sentence', (name, codec) => {
  expect(opened(offers.get(name)!, 'publish', 'h264')).toMatchObject({
    type: 'refused',
    code: 'NO_CODEC',
    reason: `The room allows constrained baseline H.264 for video, the SDP offer has: ${codec}`,
  });
});

test('names a refused H.264 profile', () => {
  const answer = opened(offers.get('ffmpeg-high-profile')!, 'publish');
  expect(answer).toMatchObject({ reason: expect.stringMatching(/has: H264 with profile-level-id 64001f$/) });
});

/** Returns texts with up to six of their lines dropped, copied, cut or overwritten. */
function mutations(texts: readonly string[]): fc.Arbitrary<string> {
  return fc.constantFrom(...texts).chain((text) => {
    const lines = text.split('\r\n');
    const at = fc.nat(lines.length - 1);
    const written = fc.string({ unit: codePoint(fc), maxLength: 12 });
    const change = fc.oneof(
      at.map((from) => (all: string[]) => void all.splice(from, 1)),
      fc.tuple(at, at).map(
        ([from, to]) =>
          (all: string[]) =>
            void all.splice(to, 0, all[from] ?? ''),
      ),
      fc.tuple(at, fc.nat(40)).map(
        ([from, length]) =>
          (all: string[]) =>
            void (all[from] = all[from]?.slice(0, length) ?? ''),
      ),
      fc.tuple(at, fc.nat(60), written).map(([from, place, more]) => (all: string[]) => {
        const line = all[from] ?? '';
        all[from] = line.slice(0, place) + more + line.slice(place + more.length);
      }),
    );

    return fc.array(change, { minLength: 1, maxLength: 6 }).map((changes) => {
      const all = [...lines];
      for (const apply of changes) apply(all);

      return all.join('\r\n');
    });
  });
}

test('answers a mutated offer or refuses it with a documented error only', () => {
  fc.assert(
    fc.property(mutations([...offers.values()]), fc.constantFrom('publish' as const, 'watch' as const), (sdp, role) => {
      const answer = opened(sdp, role);
      if (answer.type === 'answer') expect(answer.sdp).toMatch(/^v=0\r\n/);
      else expect(answer).toMatchObject({ type: 'refused' });
      try {
        acceptOffer(sdp, role, { videoCodec: null });
        expect(answer.type).toBe('answer');
      } catch (error) {
        expect(error).toBeInstanceOf(WhipError);
      }
    }),
    { numRuns: fuzzRuns(1_000) },
  );
});

/** Returns the parts of a client's offer that it sends to trickle candidates or restart ICE (RFC 8840, section 9). */
function fragmentOf(sdp: string): string {
  const sent = /^(m=|a=(mid|ice-ufrag|ice-pwd|ice-options|candidate|end-of-candidates|group))/;
  const candidate = 'a=candidate:1 1 udp 2122260223 192.0.2.1 50000 typ host generation 0 ufrag abcd network-id 1';

  return `${[...sdp.split('\r\n').filter((line) => sent.test(line)), candidate, 'a=end-of-candidates'].join('\r\n')}\r\n`;
}

test('reads the credentials from the fragment of each offer, and reads or refuses a mutated one', () => {
  const fragments = [...offers.values()].map(fragmentOf);
  for (const fragment of fragments) expect(parseFragment(fragment)).toEqual({ ufrag: 'abcd', pwd: expect.any(String) });
  fc.assert(
    fc.property(mutations(fragments), (fragment) => {
      try {
        const read = parseFragment(fragment);
        if (read !== null) expect(read.pwd.length).toBeGreaterThanOrEqual(22);
      } catch (error) {
        expect(error).toBeInstanceOf(WhipError);
      }
    }),
    { numRuns: fuzzRuns(1_000) },
  );
});
