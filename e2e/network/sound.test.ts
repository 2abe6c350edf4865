import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { Person } from '../client/person.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import type { Stage } from '../harness/stage.js';
import { badNetworkSuite } from './bad-network.js';

const WATCH_MS = nightly ? 40_000 : 8_000;
/** Without redundancy it is 17 %. In a short time, chance may lose more packets together with their repetitions. */
const MADE_UP_PERCENT = nightly ? 3 : 8;
/** The server measures the loss, and the browser's jitter buffer grows. */
const SETTLE_MS = 4_000;

interface Played {
  packets: number;
  lost: number;
  samples: number;
  concealed: number;
}

declare global {
  interface Window {
    /** Returns how the browser played the sounds of the last connection so far. */
    played?: () => Promise<Played>;
  }
}

async function join(stage: Stage, room: string, name: string): Promise<Person> {
  const page = await stage.page('client');
  await listen(page);
  return Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
}

/** Plays the sounds of the next connection and counts their samples. */
async function listen(page: Page): Promise<void> {
  await page.evaluate(() => {
    const connections: RTCPeerConnection[] = [];
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor(configuration?: RTCConfiguration) {
        super(configuration);
        connections.push(this);
      }
    };
    window.application.client.on('trackReady', ({ media }) => {
      if (media === null) return;
      // Chromium decodes sound only while an element plays it.
      void Object.assign(new Audio(), { muted: true, srcObject: new MediaStream([media]) }).play();
    });
    window.played = async () => {
      const played = { packets: 0, lost: 0, samples: 0, concealed: 0 };
      const report = await connections.at(-1)?.getStats();
      report?.forEach((entry: RTCInboundRtpStreamStats) => {
        if (entry.type !== 'inbound-rtp' || entry.kind !== 'audio') return;
        played.packets += entry.packetsReceived ?? 0;
        played.lost += entry.packetsLost ?? 0;
        played.samples += entry.totalSamplesReceived ?? 0;
        played.concealed += entry.concealedSamples ?? 0;
      });
      return played;
    };
  });
}

await badNetworkSuite('A listener who loses every fifth packet', (stage, network) => {
  test('hears what was said: few samples are made up', async () => {
    const room = await stage.room();
    const ann = await join(stage, room, 'ann');
    network.spareThose();
    const eve = await join(stage, room, 'eve');
    await ann.page.evaluate(() => window.application.publishTone());
    const played = (): Promise<Played> => eve.page.evaluate(() => window.played!());
    while ((await played()).samples < 48_000) await delay(100);
    network.impair({ down: { loss: 0.2, delayMs: 50 }, up: { delayMs: 50 } });
    await delay(SETTLE_MS);

    const before = await played();
    await delay(WATCH_MS);
    const after = await played();
    const samples = after.samples - before.samples;
    expect(samples).toBeGreaterThan(WATCH_MS * 24);
    // The loss was real: a tenth is less than chance leaves of a fifth.
    const lost = after.lost - before.lost;
    expect(lost).toBeGreaterThan((lost + after.packets - before.packets) / 10);
    promise('samples made up under 20 % loss', (100 * (after.concealed - before.concealed)) / samples, {
      bound: MADE_UP_PERCENT,
      unit: '%',
    });
  });
});
