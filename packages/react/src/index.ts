'use client'; // everything here runs in the browser, even if a server component imports it

export { useDevices } from './devices.js';
export { type LocalMediaOptions, type MediaControl, type MediaSource, useLocalMedia } from './local-media.js';
export { AudioRenderer, type AudioRendererProps, VideoTile, type VideoTileProps } from './media.js';
export { type Messages, type MessagesOptions, useMessages } from './messages.js';
export {
  type Room,
  RoomProvider,
  type SeatRequest,
  useLocalTracks,
  useMediaState,
  usePeers,
  usePeopleStatus,
  usePermissions,
  useRoom,
  useRoomClient,
  useTracks,
} from './room.js';
