import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalTrack, type PublishOptions, preferCodec, requestCodec } from './local-track.js';

const host = {
  sendTrackEvent: () => undefined,
  removeTrack: async () => undefined,
  localTrackChanged: () => undefined,
};
function trackOf(kind: 'audio' | 'video', options: PublishOptions): LocalTrack {
  const media = { kind, contentHint: '', addEventListener: () => undefined } as unknown as NonNullable<
    LocalTrack['media']
  >;
  return new LocalTrack(media, options, host);
}
const encodingsOf = (track: LocalTrack, place = 0): unknown => track.init(track.codecs[place], place).sendEncodings;
const encodings = (kind: 'audio' | 'video', options: PublishOptions): unknown => encodingsOf(trackOf(kind, options));

test("applies an application's limit to audio as well as video", () => {
  expect(encodings('audio', { maxBitrateBps: 24_000 })).toEqual([{ active: true, maxBitrate: 24_000 }]);
  expect(encodings('video', { maxBitrateBps: 300_000, simulcast: false })).toEqual([
    { active: true, maxBitrate: 300_000 },
  ]);
});

test('leaves audio without a limit to the browser', () => {
  expect(encodings('audio', {})).toEqual([{ active: true }]);
});

describe('redundant sound', () => {
  afterEach(() => {
    Reflect.deleteProperty(globalThis, 'RTCRtpSender');
  });

  /** Returns the codecs that a transceiver offers in a browser with these; undefined in the browser's order. */
  function offered(...all: string[]): string[] | undefined {
    const codecs = all.map((mimeType) => ({ mimeType }));
    Object.assign(globalThis, { RTCRtpSender: { getCapabilities: () => ({ codecs }) } });
    let preferred: string[] | undefined;
    const transceiver = {
      receiver: { track: { kind: 'audio' } },
      setCodecPreferences: (order: RTCRtpCodec[]) => (preferred = order.map(({ mimeType }) => mimeType)),
    } as unknown as RTCRtpTransceiver;
    preferCodec(transceiver, 'audio/red', 'audio/');
    return preferred;
  }

  test('is offered before all other codecs', () => {
    expect(offered('audio/opus', 'audio/red', 'audio/PCMU')).toEqual([
      'audio/red',
      'audio/opus',
      'audio/red',
      'audio/PCMU',
    ]);
  });

  test('changes nothing where the browser lacks it', () => {
    expect(offered('audio/opus', 'audio/PCMU')).toBeUndefined();
    expect(() => preferCodec({} as unknown as RTCRtpTransceiver, 'audio/red', 'audio/')).not.toThrow();
  });
});

describe('a requested codec', () => {
  const all = ['video/VP8', 'video/rtx', 'video/H264', 'video/VP9', 'video/VP9'].map((mimeType) => ({ mimeType }));
  beforeEach(() => {
    const none = ['audio/opus'].map((mimeType) => ({ mimeType }));
    const getCapabilities = (kind: string) => ({ codecs: kind === 'video' ? all : none });
    Object.assign(globalThis, { RTCRtpSender: { getCapabilities } });
  });
  afterEach(() => {
    Reflect.deleteProperty(globalThis, 'RTCRtpSender');
  });

  /** Returns the codecs that the transceiver of a track offers; undefined if it offers all. */
  function offered(kind: 'audio' | 'video', options: PublishOptions, place: 0 | 1 = 0): string[] | undefined {
    let preferred: string[] | undefined;
    const transceiver = {
      receiver: { track: { kind } },
      setCodecPreferences: (codecs: RTCRtpCodec[]) => (preferred = codecs.map(({ mimeType }) => mimeType)),
    } as unknown as RTCRtpTransceiver;
    requestCodec(transceiver, trackOf(kind, options).codecs[place]);
    return preferred;
  }

  test('is offered alone, with its retransmissions', () => {
    expect(offered('video', { codec: 'vp9' })).toEqual(['video/VP9', 'video/VP9', 'video/rtx']);
  });

  test('is followed by that of the second encoding', () => {
    const options = { codecs: ['vp9', 'vp8'] } as const;
    expect(offered('video', options)).toEqual(['video/VP9', 'video/VP9', 'video/rtx']);
    expect(offered('video', options, 1)).toEqual(['video/VP8', 'video/rtx']);
  });

  test('changes nothing where the browser lacks it, for audio, and without the option', () => {
    expect(offered('video', { codec: 'av1' as 'vp9' })).toBeUndefined();
    expect(offered('audio', { codec: 'vp9' })).toBeUndefined();
    expect(offered('video', {})).toBeUndefined();
  });

  test('is left out where the browser lacks setCodecPreferences, or refuses the codec in it', () => {
    const refuses = () => {
      throw new DOMException('', 'InvalidModificationError');
    };
    for (const transceiver of [{}, { setCodecPreferences: refuses }]) {
      const request = () => requestCodec(transceiver as unknown as RTCRtpTransceiver, 'vp9');
      expect(request).not.toThrow();
    }
  });

  test('sends layers in one stream, without simulcast', () => {
    const options = { codec: 'vp9', scalabilityMode: 'L3T3_KEY', maxBitrateBps: 900_000 } as const;
    expect(encodings('video', options)).toEqual([{ active: true, maxBitrate: 900_000, scalabilityMode: 'L3T3_KEY' }]);
    expect(trackOf('video', options).simulcast).toBe(false);
    expect(encodings('audio', { scalabilityMode: 'L1T3' })).toEqual([{ active: true }]);
  });

  test('sends each size of VP9 as a stream of its own', () => {
    expect(encodings('video', { codec: 'vp9' })).toMatchObject(
      ['l', 'm', 'h'].map((rid) => ({ rid, scalabilityMode: 'L1T1' })),
    );
    expect(JSON.stringify(encodings('video', { codec: 'vp8' }))).not.toContain('scalabilityMode');
  });
});

describe('a second encoding', () => {
  const options = { codecs: ['vp9', 'vp8'] } as const;
  const second = (more: PublishOptions): unknown => encodingsOf(trackOf('video', { ...options, ...more }), 1);

  /** Returns a sender, and what was asked of it. */
  function fakeSender() {
    const asked: unknown[] = [];
    const sender = {
      replaceTrack: (media: MediaStreamTrack | null) => {
        asked.push(media);
        return Promise.resolve();
      },
    };
    return { asked, sender: sender as unknown as RTCRtpSender };
  }

  test('has the sizes of the first, without its layers, and is not sent at first', () => {
    expect(second({})).toMatchObject(['l', 'm', 'h'].map((rid) => ({ rid, active: false })));
    expect(JSON.stringify(second({}))).not.toContain('scalabilityMode');
    expect(second({ scalabilityMode: 'L3T3_KEY', maxBitrateBps: 900_000 })).toEqual([
      { maxBitrate: 900_000, active: false },
    ]);
  });

  test('is muted and replaced with the first', async () => {
    const [first, other] = [fakeSender(), fakeSender()];
    const track = trackOf('video', options);
    await track.bind('ann:1', [first, other]);
    const next = { addEventListener: () => undefined } as unknown as MediaStreamTrack;
    await track.mute();
    await track.replace(next);
    await track.unmute();
    expect([first.asked, other.asked]).toEqual([
      [null, next],
      [null, next],
    ]);
  });

  test('does not exist for sound or with one codec', () => {
    expect(trackOf('video', options).codecs).toHaveLength(2);
    expect(trackOf('audio', options).codecs).toHaveLength(1);
    expect(trackOf('video', { codec: 'vp9' }).codecs).toHaveLength(1);
  });
});
