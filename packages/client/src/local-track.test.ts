import { expect, test } from '@jest/globals';
import { LocalTrack, type PublishOptions } from './local-track.js';

const host = {
  sendTrackEvent: () => undefined,
  removeTrack: async () => undefined,
  localTrackChanged: () => undefined,
};
function encodings(kind: 'audio' | 'video', options: PublishOptions): unknown {
  const media = { kind, contentHint: '', addEventListener: () => undefined } as unknown as NonNullable<
    LocalTrack['media']
  >;
  return new LocalTrack(media, options, host).init.sendEncodings;
}

test("applies an application's limit to audio as well as video", () => {
  expect(encodings('audio', { maxBitrateBps: 24_000 })).toEqual([{ maxBitrate: 24_000 }]);
  expect(encodings('video', { maxBitrateBps: 300_000, simulcast: false })).toEqual([{ maxBitrate: 300_000 }]);
});

test('leaves audio without a limit to the browser', () => {
  expect(encodings('audio', {})).toEqual([{}]);
});
