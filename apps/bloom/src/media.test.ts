import { expect, test } from '@jest/globals';
import { Metrics } from '@bloom/metrics';
import { emptyEngineStats } from '@bloom/sfu';
import { MediaTraffic } from './media.js';

test("traffic counters grow with the engine's totals, even when a replaced worker starts at zero again", async () => {
  const metrics = new Metrics({ tickSeconds: 10 });
  const totals = emptyEngineStats();
  const traffic = new MediaTraffic({ stats: async () => structuredClone(totals) }, metrics);
  for (const [received, sent, malformed] of [
    [3, 27, 1],
    [5, 45, 1],
    [2, 18, 0],
    [4, 36, 2],
  ] as const) {
    Object.assign(totals, { bytesReceived: 100 * received, dataMessagesReceived: received, dataMessagesSent: sent });
    totals.packetsCrossed = 10 * received;
    totals.dropped['data_malformed'] = malformed;
    await traffic.sample();
  }

  const text = await metrics.expose();
  expect(text).toContain('bloom_traffic_ingress_webrtc_bytes_total 700\n');
  expect(text).toContain('bloom_data_messages_total{direction="in"} 7\n');
  expect(text).toContain('bloom_data_messages_total{direction="out"} 63\n');
  expect(text).toContain('bloom_media_packets_crossed_total 70\n');
  expect(text).toContain('bloom_media_drops_total{reason="data_malformed"} 3\n');
});
