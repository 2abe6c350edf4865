/**
 * Room events as plain values, the same for server websockets and webhooks. Metadata is any JSON value; it becomes JSON
 * text on the wire.
 */

export type TrackType = 'audio' | 'video';

export interface TrackInfo {
  id: string;
  type: TrackType;
  metadata: unknown;
}

/** The publisher of a track. */
export type TrackOwner = { peerId: string } | { componentId: string };

export type Notification =
  | { type: 'roomCreated'; roomId: string }
  | { type: 'roomDeleted'; roomId: string }
  | { type: 'roomCrashed'; roomId: string }
  | { type: 'peerAdded'; roomId: string; peerId: string }
  | { type: 'peerDeleted'; roomId: string; peerId: string }
  | { type: 'peerConnected'; roomId: string; peerId: string }
  | { type: 'peerDisconnected'; roomId: string; peerId: string }
  | { type: 'peerCrashed'; roomId: string; peerId: string; reason: string }
  | { type: 'peerMetadataUpdated'; roomId: string; peerId: string; metadata: unknown }
  | { type: 'componentCrashed'; roomId: string; componentId: string }
  | { type: 'trackAdded'; roomId: string; owner: TrackOwner; track: TrackInfo }
  | { type: 'trackRemoved'; roomId: string; owner: TrackOwner; track: TrackInfo }
  | { type: 'trackMetadataUpdated'; roomId: string; owner: TrackOwner; track: TrackInfo }
  | { type: 'hlsPlayable'; roomId: string; componentId: string }
  | { type: 'hlsUploaded'; roomId: string }
  | { type: 'hlsUploadCrashed'; roomId: string }
  | RecordingEvent
  | DataMessage;

/** What became of a recording whose component asked for it with `notify`. */
export type RecordingEvent = RecordingUploaded | RecordingFailed;

interface RecordingPart {
  roomId: string;
  componentId: string;
  /** Object keys are the prefix, a slash and a file name. */
  prefix: string;
  files: string[];
}

export interface RecordingUploaded extends RecordingPart {
  type: 'recordingUploaded';
}

export interface RecordingFailed extends RecordingPart {
  type: 'recordingFailed';
  reason: string;
}

/** A message that a client sent on a data channel whose label is in the room's `dataEvents`. */
export interface DataMessage {
  type: 'dataMessage';
  roomId: string;
  /** The sender. */
  peerId: string;
  label: string;
  /** Ids of the receivers; empty if the message was for everybody. */
  to: string[];
  data: string | Uint8Array;
}
