import { describe, expect, test } from '@jest/globals';
import type { OfferedCodec } from './offer.js';
import { readOffer } from './fixtures/read.js';
import {
  chooseExtensions,
  choosePublishedCodec,
  chooseReceivedCodec,
  type OfferedMedia,
  parseOffer,
} from '../index.js';

const [audio, video] = parseOffer(readOffer('chromium-audio-video')).media as [OfferedMedia, OfferedMedia];

/** Returns an m-line with these codecs: `H264 42e01f 1`, `VP8`, `rtx apt`. */
function mediaWith(...codecs: string[]): OfferedMedia {
  return {
    ...video,
    codecs: codecs.map((text, index): OfferedCodec => {
      const [encodingName = '', first = '', second] = text.split(' ');
      const parameters =
        encodingName === 'rtx'
          ? `apt=${first}`
          : first && `profile-level-id=${first}${second === undefined ? '' : `;packetization-mode=${second}`}`;
      return {
        payloadType: 100 + index,
        encodingName,
        name: encodingName.toLowerCase(),
        clockRate: 90_000,
        parameters,
        feedback: [],
      };
    }),
  };
}

describe('the codec of a publication', () => {
  test('chooses opus on an audio m-line, never red or telephone-event', () => {
    expect(choosePublishedCodec(audio, null)).toEqual({
      name: 'opus',
      encodingName: 'opus',
      payloadType: 111,
      clockRate: 48_000,
      channels: 2,
      parameters: 'minptime=10;useinbandfec=1',
      feedback: ['transport-cc'],
    });
  });

  test('chooses the codec enforced in the room, with its RTX and supported feedback', () => {
    expect(choosePublishedCodec(video, 'vp8')).toMatchObject({
      name: 'vp8',
      payloadType: 96,
      rtxPayloadType: 97,
      feedback: ['ccm fir', 'nack', 'nack pli', 'transport-cc'],
    });
    expect(choosePublishedCodec(video, 'h264')).toMatchObject({ name: 'h264', payloadType: 108, rtxPayloadType: 109 });
  });

  test('chooses the first of VP8 and H264 in offer order when the room enforces none', () => {
    expect(choosePublishedCodec(mediaWith('VP9', 'H264 42e01f 1', 'VP8'), null)?.name).toBe('h264');
    expect(choosePublishedCodec(mediaWith('VP9', 'VP8', 'H264 42e01f 1'), null)?.name).toBe('vp8');
  });

  test('never chooses H264 that constrained baseline decoders cannot play', () => {
    expect(choosePublishedCodec(mediaWith('H264 64001f 1', 'H264 42001f 1'), 'h264')).toBeNull();
    expect(choosePublishedCodec(mediaWith('H264 64001f 1', 'H264 4d801f 1'), 'h264')?.payloadType).toBe(101);
  });

  test('chooses VP9 only when the offer has neither VP8 nor H264, and never for clients that may not ask for it', () => {
    expect(choosePublishedCodec(mediaWith('VP9'), null)?.name).toBe('vp9');
    expect(choosePublishedCodec(mediaWith('H264 64001f 1', 'VP9'), null)?.name).toBe('vp9');
    expect(choosePublishedCodec(mediaWith('VP9'), null, { commonOnly: true })).toBeNull();
  });

  test('chooses none when the offer has no accepted codec', () => {
    expect(choosePublishedCodec(mediaWith('VP6', 'H263'), null)).toBeNull();
    expect(choosePublishedCodec(mediaWith('VP9'), 'vp8')).toBeNull();
    expect(choosePublishedCodec(mediaWith('VP8'), 'h264')).toBeNull();
    const codecs = audio.codecs.filter(({ name }) => ['red', 'telephone-event'].includes(name));
    expect(choosePublishedCodec({ ...audio, codecs }, null)).toBeNull();
  });
});

describe('redundant sound', () => {
  const isRed = ({ name }: OfferedCodec): boolean => name === 'red';
  const red = audio.codecs.find(isRed)!;
  const first = { ...audio, codecs: [red, ...audio.codecs.filter((codec) => !isRed(codec))] };

  test('is agreed with a client that prefers it, in both directions', () => {
    const expected = { name: 'opus', payloadType: 111, redPayloadType: red.payloadType };
    expect(choosePublishedCodec(first, null)).toMatchObject(expected);
    expect(chooseReceivedCodec(first, 'opus')).toMatchObject(expected);
  });

  test('is not agreed where it comes after its codec, as browsers offer it', () => {
    expect(chooseReceivedCodec(audio, 'opus')).not.toHaveProperty('redPayloadType');
    expect(choosePublishedCodec(audio, null)).not.toHaveProperty('redPayloadType');
  });

  test('is agreed wherever it comes with a client whose protocol expects it', () => {
    const codec = chooseReceivedCodec(audio, 'opus', { redundancy: true });
    expect(codec).toMatchObject({ payloadType: 111, redPayloadType: red.payloadType });
  });

  test('is not agreed for pictures', () => {
    const vp8 = video.codecs.find(({ name }) => name === 'vp8')!;
    const codecs = [{ ...red, clockRate: 90_000, channels: undefined, parameters: `${vp8.payloadType}` }, vp8];
    const line = { ...video, codecs: codecs.map(({ channels: _channels, ...codec }) => codec) };
    expect(choosePublishedCodec(line, null)).not.toHaveProperty('redPayloadType');
  });

  test.each([
    ['is of another codec', { parameters: '9/9' }],
    ['is of several codecs', { parameters: '111/9' }],
    ['does not name its codec', { parameters: '' }],
    ['has another clock', { clockRate: 8_000 }],
    ['has another number of channels', { channels: 1 }],
  ])('is not agreed if it %s', (_what, over) => {
    const [, ...rest] = first.codecs;
    const codecs = [{ ...red, ...over }, ...rest];
    expect(choosePublishedCodec({ ...first, codecs }, null)).not.toHaveProperty('redPayloadType');
  });
});

describe('the codec of a reception', () => {
  test('prefers constrained baseline with packetization mode 1, then any constrained baseline, then any H264', () => {
    const all = ['H264 64001f 1', 'H264 42e01f 0', 'H264 42e01f 1'];
    expect(chooseReceivedCodec(mediaWith(...all), 'h264')?.payloadType).toBe(102);
    expect(chooseReceivedCodec(mediaWith(...all.slice(0, 2)), 'h264')?.payloadType).toBe(101);
    expect(chooseReceivedCodec(mediaWith(...all.slice(0, 1)), 'h264')?.payloadType).toBe(100);
  });

  test('finds RTX only by its associated payload type', () => {
    expect(chooseReceivedCodec(mediaWith('VP8', 'rtx 100'), 'vp8')?.rtxPayloadType).toBe(101);
    expect(chooseReceivedCodec(mediaWith('VP8', 'rtx 99'), 'vp8')?.rtxPayloadType).toBeUndefined();
  });

  test("chooses none when the receiver does not offer the track's codec", () => {
    expect(chooseReceivedCodec(mediaWith('VP8'), 'h264')).toBeNull();
  });
});

describe('header extensions', () => {
  test("agrees on supported extensions only, with the client's ids", () => {
    expect(chooseExtensions(video, { audioLevel: true })).toEqual({ mid: 4, rid: 10, repairedRid: 11, transportCc: 3 });
    expect(chooseExtensions(audio, { audioLevel: true })).toEqual({ mid: 4, transportCc: 3, audioLevel: 1 });
  });

  test('omits the audio level if the published track has none', () => {
    expect(chooseExtensions(audio, { audioLevel: false })).toEqual({ mid: 4, transportCc: 3 });
  });

  test('omits extensions whose ids do not fit the one-byte header', () => {
    const media = { ...audio, extensions: [{ id: 15, uri: 'urn:ietf:params:rtp-hdrext:sdes:mid' }] };
    expect(chooseExtensions(media, { audioLevel: true })).toEqual({});
  });
});

test('agrees on the dependency descriptor with AV1 alone: Chromium would send it with every codec', () => {
  const uri = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';
  const line = { ...video, extensions: [...video.extensions, { id: 13, uri }] };
  const agreed = (codec?: 'av1' | 'vp9'): number | undefined =>
    chooseExtensions(line, { audioLevel: true, codec }).dependencies;
  expect([agreed('av1'), agreed('vp9'), agreed()]).toEqual([13, undefined, undefined]);
});

test('does not agree on the dependency descriptor with a client that takes no mixed forms of extensions', () => {
  const uri = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';
  const text = readOffer('chromium-audio-video').replace('a=extmap-allow-mixed\r\n', '');
  const plain = parseOffer(text).media.find(({ kind }) => kind === 'video')!;
  const line = { ...plain, extensions: [{ id: 13, uri }] };
  expect(chooseExtensions(line, { audioLevel: true, codec: 'av1' })).toEqual({});
});
