import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { TrustedProxies } from '@bloom/net';
import { createMediaEngine, emptyEngineStats, type EngineStats, type MediaEngine } from '@bloom/sfu';
import { Certificate } from './certificate.js';

export interface EngineParts {
  settings: Settings;
  workers: number;
  log: Log;
  /** Maximum number of connections per relay port; undefined: the documented limit. */
  maxRelayConnections?: number | undefined;
}

/** The media plane and the parts it shares with the HTTP listener. */
export interface Media {
  engine: MediaEngine;
  /** undefined without HTTPS. */
  certificate: Certificate | undefined;
}

/** Starts the media plane. Without WebRTC it serves only components, on loopback. */
export async function openEngine(parts: EngineParts): Promise<Media> {
  const { settings, log } = parts;
  const certificate = settings.http.tls === null ? undefined : new Certificate({ tls: settings.http.tls, log });
  try {
    return { engine: await createMediaEngine(engineOptions(parts, certificate)), certificate };
  } catch (error) {
    certificate?.close();
    throw error;
  }
}

function engineOptions(parts: EngineParts, certificate: Certificate | undefined) {
  const { settings, workers, log, maxRelayConnections } = parts;
  const { webrtc, http } = settings;
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
    ...(maxRelayConnections === undefined ? {} : { maxTcpConnections: maxRelayConnections }),
    ...(http.proxyProtocol ? { proxies: new TrustedProxies(http.trustedProxies) } : {}),
    workers,
    log,
  };
}

/** Adds the growth of the engine's totals to the traffic counters. A replaced worker starts at zero again. */
export class MediaTraffic {
  readonly #engine: Pick<MediaEngine, 'stats'>;
  readonly #metrics: Pick<Metrics, 'webrtcReceived' | 'webrtcSent' | 'quality'>;
  #before: EngineStats = emptyEngineStats();

  constructor(engine: Pick<MediaEngine, 'stats'>, metrics: Pick<Metrics, 'webrtcReceived' | 'webrtcSent' | 'quality'>) {
    this.#engine = engine;
    this.#metrics = metrics;
  }

  async sample(): Promise<void> {
    const now = await this.#engine.stats().catch(() => undefined);
    if (now === undefined) return;

    const metrics = this.#metrics;
    const before = this.#before;
    metrics.webrtcReceived(growth(now.bytesReceived, before.bytesReceived));
    metrics.webrtcSent(growth(now.bytesSent, before.bytesSent));
    metrics.quality.dataMessages('in', growth(now.dataMessagesReceived, before.dataMessagesReceived));
    metrics.quality.dataMessages('out', growth(now.dataMessagesSent, before.dataMessagesSent));
    for (const [reason, count] of Object.entries(now.dropped)) {
      metrics.quality.mediaDropped(reason, growth(count, before.dropped[reason] ?? 0));
    }
    this.#before = now;
  }
}

function growth(now: number, before: number): number {
  return Math.max(0, now - before);
}
