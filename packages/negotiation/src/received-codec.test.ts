import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import type { OfferedMedia } from '@bloom/webrtc';
import fc from 'fast-check';
import { chooseTrackCodec } from './received-codec.js';

const NAMES = ['vp8', 'vp9', 'av1', 'h265'] as const;

/** Returns an m-line on which a client receives these codecs. */
function lineWith(names: readonly string[]): OfferedMedia {
  const codecs = names.map((name, i) => {
    return { payloadType: 100 + i, encodingName: name, name, clockRate: 90_000, parameters: '', feedback: [] };
  });
  return { mid: '0', kind: 'video', direction: 'recvonly', refused: false, codecs } as unknown as OfferedMedia;
}

test('a receiver gets the first codec of a track that it has, and nothing if it has neither', () => {
  const name = fc.constantFrom(...NAMES);
  fc.assert(
    fc.property(fc.uniqueArray(name), name, fc.option(name, { nil: undefined }), (offered, codec, fallback) => {
      const wanted = fallback === undefined ? [codec] : [codec, fallback];
      const chosen = chooseTrackCodec(lineWith(offered), { codec, fallback });
      expect(chosen?.name).toBe(wanted.find((each) => offered.includes(each)));
      if (chosen !== null) expect(chosen.payloadType).toBe(100 + offered.indexOf(chosen.name as typeof codec));
    }),
    { numRuns: fuzzRuns(200) },
  );
});
