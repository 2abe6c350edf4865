import { expect, test } from '@jest/globals';
import { toAnnexB } from '@bloom/rtp';
import { idr, picture, PPS, SPS } from '../../testing/room.js';
import { HLS_PROFILE } from '../profile.js';
import { PartCutter } from './part-cutter.js';

test('ends the sound of a part with its pictures, and not a frame later', () => {
  const parts: { frames: number; last: boolean }[] = [];
  const cutter = new PartCutter({
    audioConfig: Buffer.from([0x11, 0x90]),
    onStarted: () => undefined,
    onPart: (part) => parts.push(part),
  });
  let sounds = 0;
  for (let pictures = 1; pictures <= 2 * HLS_PROFILE.framesPerPart * HLS_PROFILE.partsPerSegment; pictures += 1) {
    const key = cutter.wantsKey;
    cutter.addPicture({ data: toAnnexB([SPS, PPS, key ? idr() : picture()]), key }, pictures);
    while (cutter.wantsAudio) {
      cutter.addAudio(Buffer.from([0]));
      sounds += 1;
    }
    cutter.cutWhenFull();
    // 1,600 samples per picture and 1,024 per audio frame: after 16 pictures both end together.
    expect(sounds).toBe(Math.ceil((pictures * 1_600) / 1_024));
  }
  expect(parts.map(({ frames }) => frames)).toEqual(Array.from({ length: 12 }, () => 10));
  expect(parts.filter(({ last }) => last)).toHaveLength(2);
});
