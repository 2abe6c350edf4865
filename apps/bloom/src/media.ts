import type { Settings, WebrtcSettings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { TrustedProxies } from '@bloom/net';
import {
  emptyEngineStats,
  type EngineStats,
  type MediaEngine,
  openMediaEngine,
  type RelayingEngine,
  type TurnTlsOptions,
} from '@bloom/sfu';
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
  engine: RelayingEngine;
  /** undefined without HTTPS. */
  certificate: Certificate | undefined;
}

/** Starts the media plane. Without WebRTC it serves only components, on loopback. */
export async function openEngine(parts: EngineParts): Promise<Media> {
  const { settings, log } = parts;
  const certificate = settings.http.tls === null ? undefined : new Certificate({ tls: settings.http.tls, log });
  try {
    return { engine: await openMediaEngine(engineOptions(parts, certificate)), certificate };
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
  const { turnListenIp, turnIp, second, more, turnPortRange, advertisedPorts, turnTcpPort } = webrtc;

  return {
    listenIp: turnListenIp,
    announcedIp: turnIp,
    ...(second === null ? {} : { second: { listenIp: second.turnListenIp, announcedIp: second.turnIp } }),
    ...(more === 'machine' ? {} : { more }),
    portRange: turnPortRange,
    ...(advertisedPorts === null ? {} : { advertisedPorts }),
    ...(turnTcpPort === null ? {} : { tcpPort: turnTcpPort }),
    ...tlsOptions(webrtc, certificate),
    ...(maxRelayConnections === undefined ? {} : { maxTcpConnections: maxRelayConnections }),
    ...(http.proxyProtocol ? { proxies: new TrustedProxies(http.trustedProxies) } : {}),
    workers,
    log,
  };
}

function tlsOptions(webrtc: WebrtcSettings, certificate: Certificate | undefined): { tls?: TurnTlsOptions } {
  const { turnTlsPort, turnTlsHost: host, turnTlsOnHttp } = webrtc;
  if (turnTlsPort === null || certificate === undefined) return {};
  if (turnTlsOnHttp !== null) return { tls: { port: turnTlsOnHttp, host } };

  return { tls: { port: turnTlsPort, host, context: () => certificate.context } };
}

/** Adds the growth of the engine's totals to the traffic counters. A replacement worker starts counting from zero. */
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
    metrics.quality.packetsCrossed(growth(now.packetsCrossed, before.packetsCrossed));
    for (const [reason, count] of Object.entries(now.dropped)) {
      metrics.quality.mediaDropped(reason, growth(count, before.dropped[reason] ?? 0));
    }
    this.#before = now;
  }
}

function growth(now: number, before: number): number {
  return Math.max(0, now - before);
}
