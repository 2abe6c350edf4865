import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { badNetworkSuite } from './bad-network.js';

const WATCH_MS = nightly ? 30_000 : 12_000;
/** The browser's jitter buffer grows with the first retransmission, so early readings do not show the steady state. */
const SETTLE_MS = 4_000;
/**
 * Each attempt to repair a packet takes a 100 ms round trip plus detection, and fails in 4 % of cases. Of the 800
 * packets watched, 2 % are lost: three consecutive failures, half a second, occur in one run of 40; five in one of
 * 25,000.
 */
const LONGEST_PAUSE_MS = 800;

await badNetworkSuite('A subscriber that loses packets', (stage, network) => {
  test('sees what one without loss sees, and its picture never stops', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob']);
    const track = await ann.addVideo(
      { colour: 'green', width: 480, height: 270, fps: 15, noisy: true },
      { maxBandwidth: 500 },
    );
    await bob.plays(track);
    network.spareThose();
    network.impair({ up: { loss: 0.02, delayMs: 50 }, down: { loss: 0.02, delayMs: 50 } });
    const eve = await stage.peer(room, 'eve');
    await eve.join();
    await eve.plays(track);
    await delay(SETTLE_MS);

    const before = await Promise.all([bob.call('inbound', track), eve.call('inbound', track)]);
    await Promise.all([bob.call('resetGap', track), eve.call('resetGap', track)]);
    await delay(WATCH_MS);
    const gaps = await Promise.all([bob.call('frames', track), eve.call('frames', track)]);
    const after = await Promise.all([bob.call('inbound', track), eve.call('inbound', track)]);
    const [without, withLoss] = [0, 1].map((i) => (after[i]?.framesDecoded ?? 0) - (before[i]?.framesDecoded ?? 0));
    expect(without).toBeGreaterThan((WATCH_MS / 1000) * 8);
    // The loss was real, and retransmissions repaired it.
    expect((after[1]?.nackCount ?? 0) - (before[1]?.nackCount ?? 0)).toBeGreaterThan(0);
    promise('frames missing under 2 % loss', 100 * (1 - (withLoss ?? 0) / (without ?? 1)), { bound: 3, unit: '%' });
    // A busy machine stops the picture of both.
    const [pause, longer] = gaps.map(({ maxGapMs }) => maxGapMs) as [number, number];
    promise('longest pause of the picture added by 2 % loss', longer - pause, LONGEST_PAUSE_MS);
  });
});
