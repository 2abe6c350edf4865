import type { Attack } from '../harness/attack.js';
import type { Publication } from '../harness/intruder.js';

/** Values at and beyond the limits of a bitrate. */
const RATES: readonly unknown[] = [
  1.7e308,
  Number.MAX_VALUE,
  1e300,
  2 ** 63,
  2 ** 53,
  5e-324,
  -1,
  '1e400',
  null,
  { l: 1.7e308, m: 1.7e308, h: 1.7e308 },
  { h: -1.7e308 },
  [],
];
const video: Publication['lines'] = [{ kind: 'video', direction: 'sendonly' }];
/** Time in which the node sends its first estimates and REMB. */
const FEEDBACK_MS = 1_500;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const bitrates: readonly Attack[] = [
  {
    title: 'a video offered with a bitrate of 1.7e308',
    async run(ground) {
      const intruder = await ground.intruder();
      const trackId = intruder.trackId();
      await intruder.negotiate({
        lines: video,
        trackIds: new Map([[0, trackId]]),
        bitrates: { [trackId]: 1.7e308 },
      });
      await intruder.connectMedia();
      await pause(FEEDBACK_MS);
    },
  },
  {
    title: 'a bitrate of 1.7e308 announced before DTLS',
    async run(ground) {
      const intruder = await ground.intruder();
      const trackId = intruder.trackId();
      await intruder.negotiate({ lines: video, trackIds: new Map([[0, trackId]]) });
      intruder.custom('trackVariantBitrates', { trackId, variantBitrates: 1.7e308 });
      await intruder.connectMedia();
      await pause(FEEDBACK_MS);
    },
  },
  {
    title: 'bitrates at the limits of numbers, on several tracks at once',
    async run(ground) {
      const intruder = await ground.intruder();
      const lines = RATES.map(() => ({ kind: 'video', direction: 'sendonly' }) as const);
      const trackIds = new Map(lines.map((_, mid) => [mid, intruder.trackId()]));
      const ids = [...trackIds.values()];
      await intruder.negotiate({
        lines,
        trackIds,
        bitrates: Object.fromEntries(ids.map((id, at) => [id, RATES[at]])),
      });
      await intruder.connectMedia();
      for (let round = 0; round < 20; round += 1) {
        const variantBitrates = ground.random.pick(RATES);
        intruder.custom('trackVariantBitrates', { trackId: ground.random.pick(ids), variantBitrates });
      }
      await pause(FEEDBACK_MS);
    },
  },
];
