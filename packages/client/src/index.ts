export { reconnectDelayMs, type ReconnectOptions } from './backoff.js';
export { RoomClient } from './client.js';
export type { ClientEvents, ClientState, ConnectOptions, FrameEncryption, Seat } from './client-types.js';
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
export type { Bytes } from './frame.js';
export type { LocalTrack, PublishOptions, VideoCodec } from './local-track.js';
export type { MeasuredClient, PersonStatus, Quality } from './measurement.js';
export type { MediaPath, MediaProblem, MediaState } from './media-state.js';
export { watchPeople } from './people-status.js';
export type { RemotePeer, RemoteTrack, Unavailable } from './remote.js';
export type { Permissions, Variant } from './signaling.js';
export type { CallStats, EncodingStats, TrackStats } from './stats.js';
export { watchForWakeUp, type WakeUpHooks } from './wake-up.js';
