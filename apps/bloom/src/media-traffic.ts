import type { Metrics } from '@bloom/metrics';
import type { EngineStats, MediaEngine } from '@bloom/sfu';

/** Turns the engine's totals into the traffic counters; a worker that was replaced starts from zero again. */
export class MediaTraffic {
  #before: Pick<EngineStats, 'bytesReceived' | 'bytesSent'> = { bytesReceived: 0, bytesSent: 0 };

  constructor(
    private readonly engine: Pick<MediaEngine, 'stats'>,
    private readonly metrics: Pick<Metrics, 'webrtcReceived' | 'webrtcSent'>,
  ) {}

  async sample(): Promise<void> {
    const stats = await this.engine.stats().catch(() => undefined);
    if (stats === undefined) return;

    const { bytesReceived, bytesSent } = stats;
    this.metrics.webrtcReceived(Math.max(0, bytesReceived - this.#before.bytesReceived));
    this.metrics.webrtcSent(Math.max(0, bytesSent - this.#before.bytesSent));
    this.#before = { bytesReceived, bytesSent };
  }
}
