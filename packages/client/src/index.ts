export { reconnectDelayMs, type ReconnectOptions } from './backoff.js';
export { RoomClient, type ClientEvents, type ClientState, type ConnectOptions, type Seat } from './client.js';
export type { DataMessage, SendOptions } from './data.js';
export {
  DeviceError,
  listDevices,
  openDevice,
  openScreen,
  watchDevices,
  type Device,
  type DeviceErrorCode,
  type DeviceKind,
} from './devices.js';
export { RoomClientError, type RoomClientErrorCode } from './errors.js';
export type { LocalTrack, PublishOptions } from './local-track.js';
export type { RemotePeer, RemoteTrack } from './remote.js';
export type { Variant } from './signaling.js';
export type { CallStats, TrackStats } from './stats.js';
export { watchForWakeUp, type WakeUpHooks } from './wake-up.js';
