import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { createMediaEngine, type EngineStats, type MediaEngine } from '@bloom/sfu';
import { Certificate } from './certificate.js';

export interface EngineParts {
  settings: Settings;
  workers: number;
  log: Log;
}

/** The media plane and what it shares with the HTTP listener. */
export interface Media {
  engine: MediaEngine;
  /** undefined without HTTPS. */
  certificate: Certificate | undefined;
}

/** Starts the media plane. Without WebRTC it serves components only, on loopback. */
export async function openEngine({ settings, workers, log }: EngineParts): Promise<Media> {
  const certificate = settings.http.tls === null ? undefined : new Certificate({ tls: settings.http.tls, log });
  try {
    return { engine: await createMediaEngine(engineOptions({ settings, workers, log }, certificate)), certificate };
  } catch (error) {
    certificate?.close();
    throw error;
  }
}

function engineOptions({ settings, workers, log }: EngineParts, certificate: Certificate | undefined) {
  const { webrtc } = settings;
  if (webrtc === null) {
    const portRange = { min: 0, max: 0 };
    return { listenIp: '127.0.0.1', announcedIp: '127.0.0.1', portRange, workers, log };
  }
  const { turnListenIp, turnIp, second, turnPortRange, turnTcpPort, turnTlsPort, turnTlsHost: host } = webrtc;

  return {
    listenIp: turnListenIp,
    announcedIp: turnIp,
    ...(second === null ? {} : { second: { listenIp: second.turnListenIp, announcedIp: second.turnIp } }),
    portRange: turnPortRange,
    ...(turnTcpPort === null ? {} : { tcpPort: turnTcpPort }),
    ...(turnTlsPort === null || certificate === undefined
      ? {}
      : { tls: { port: turnTlsPort, host, context: () => certificate.context } }),
    workers,
    log,
  };
}

/** Adds the growth of the engine's totals to the traffic counters; a replaced worker starts at zero again. */
export class MediaTraffic {
  readonly #engine: Pick<MediaEngine, 'stats'>;
  readonly #metrics: Pick<Metrics, 'webrtcReceived' | 'webrtcSent'>;
  #before: Pick<EngineStats, 'bytesReceived' | 'bytesSent'> = { bytesReceived: 0, bytesSent: 0 };

  constructor(engine: Pick<MediaEngine, 'stats'>, metrics: Pick<Metrics, 'webrtcReceived' | 'webrtcSent'>) {
    this.#engine = engine;
    this.#metrics = metrics;
  }

  async sample(): Promise<void> {
    const stats = await this.#engine.stats().catch(() => undefined);
    if (stats === undefined) return;

    const { bytesReceived, bytesSent } = stats;
    this.#metrics.webrtcReceived(Math.max(0, bytesReceived - this.#before.bytesReceived));
    this.#metrics.webrtcSent(Math.max(0, bytesSent - this.#before.bytesSent));
    this.#before = { bytesReceived, bytesSent };
  }
}
