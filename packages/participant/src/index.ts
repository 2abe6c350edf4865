export {
  connected,
  openConnection,
  decrypt,
  negotiatedBy,
  nominatedRelay,
  remoteOf,
  transportOf,
} from './connection.js';
export { type Arrivals, FastMedia } from './fast-media.js';
export { FastSource } from './fast-source.js';
export type { LoadCodec } from './layered-payload.js';
export { Publisher, stampOf, type TrackKind } from './publisher.js';
export { gathered, type RelayServer, signal } from './signal.js';
