export {
  MetricsListenError,
  openMetricsServer,
  type MetricsServer,
  type MetricsServerOptions,
} from './metrics-server.js';
export { Metrics, type LoadFigures, type MetricsOptions } from './metrics.js';
export type { CodecTracks, NodeFigures, PeerQuality, Repairs } from './quality-series.js';
