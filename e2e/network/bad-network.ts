// A node behind a bad network: browsers reach its media port through a relay that adds loss, delay and a bandwidth
// limit.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import type { Page } from 'playwright-core';
import { freeUdpRange } from '@bloom/net/testing';
import type { LinkOptions } from '../../apps/bench/src/network/link.js';
import { openUdpRelay, type UdpRelay } from '../../apps/bench/src/network/udp-relay.js';
import type { Stage } from '../harness/stage.js';
import { browserSuite } from '../harness/stage.js';

/** The node listens on one loopback address and announces the other, where the relay listens on the same port. */
const NODE = '127.0.0.1';
const RELAY = '127.0.0.2';

class BadNetwork {
  #relay: UdpRelay | undefined;
  #good: ReadonlySet<string> = new Set();

  async open(port: number): Promise<void> {
    const [listen, server] = [
      { address: RELAY, port },
      { address: NODE, port },
    ];
    this.#relay = await openUdpRelay({ listen, server, up: {}, down: {} });
  }

  async close(): Promise<void> {
    await this.#relay?.close();
  }

  get #flows(): ReadonlyMap<string, { up: { options: LinkOptions }; down: { options: LinkOptions } }> {
    if (!this.#relay) throw new Error('the relay is not open');
    return this.#relay.flows;
  }

  /** Exempts existing connections from `impair`. */
  spareThose(): void {
    this.#good = new Set(this.#flows.keys());
  }

  /** Impairs all connections since `spareThose`, and future ones. */
  impair(options: { up?: LinkOptions; down?: LinkOptions }): void {
    const spared = [...this.#flows].filter(([key]) => this.#good.has(key));
    const before = spared.map(([, { up, down }]) => ({ up: up.options, down: down.options }));
    this.#relay?.set(options);
    for (const [i, [, flow]] of spared.entries()) {
      flow.up.options = before[i]?.up ?? {};
      flow.down.options = before[i]?.down ?? {};
    }
  }
}

/** A suite on a stage whose node is reached through the bad network, which starts out good. */
export async function badNetworkSuite(
  title: string,
  body: (stage: Stage, network: BadNetwork) => void,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { first: port } = await freeUdpRange(1);
  const network = new BadNetwork();
  const env = {
    JF_WEBRTC_TURN_LISTEN_IP: NODE,
    JF_WEBRTC_TURN_IP: RELAY,
    JF_WEBRTC_TURN_PORT_RANGE: `${port}-${port}`,
    JF_MEDIA_WORKERS: '1',
    ...settings,
  };
  browserSuite(title, { node: { env } }, (stage) => {
    beforeAll(() => network.open(port));
    // A failed test may have left the network impaired.
    beforeEach(() => network.impair({ up: {}, down: {} }));
    afterAll(() => network.close());
    body(stage, network);
  });
}

/**
 * Keeps the page's rate and size, which Chromium lowers on a busy machine: then there is no large size to forward.
 */
export async function sendAllSizes(page: Page): Promise<void> {
  await page.evaluate(() => {
    window.RTCPeerConnection = class extends RTCPeerConnection {
      override async setRemoteDescription({ type, sdp = '' }: RTCSessionDescriptionInit): Promise<void> {
        const rate = 'x-google-start-bitrate=2000;x-google-min-bitrate=2000';
        await super.setRemoteDescription({
          type,
          sdp: sdp.replace(/^a=rtpmap:(\d+) (?:VP[89]|AV1|H264)\/.*\r\n/gm, `$&a=fmtp:$1 ${rate}\r\n`),
        });
        for (const sender of this.getSenders()) {
          const parameters = sender.getParameters();
          if (sender.track) await sender.setParameters({ ...parameters, degradationPreference: 'maintain-resolution' });
        }
      }
    };
  });
}

/** Calls `look` every 100 ms for `durationMs`. */
export async function watch(durationMs: number, look: () => Promise<void> | void): Promise<void> {
  for (const deadline = Date.now() + durationMs; Date.now() < deadline; await delay(100)) await look();
}
