/** Messages between nodes about events, as plain data. */
import {
  bytes,
  either,
  flag,
  json,
  jsonText,
  list,
  object,
  oneOf,
  optional,
  origin,
  sender,
  tagged,
  takes,
  text,
  type Shape,
  type Shapes,
} from '@bloom/actors';
import type { DataMessage, Notification, RecordingEvent, TrackOwner } from '@bloom/protocol';

/** Registered name of the actor that speaks `EventsProtocol` on each node. */
export const EVENTS_ACTOR = 'events_node';

export type EventsProtocol = {
  /** `node`: the sender, as this node knows it; so in the other messages that have it without sending it. */
  notification: (message: { notification: Notification; node?: string }) => void;
  /** The report, or its JSON for members that accept text: it may have more parts than a message between nodes. */
  metrics: (message: { report: unknown }) => void;
  data: (message: { notification: Notification; node?: string }) => void;
  /** Sent only to members that asked for recordings. */
  recording: (message: { notification: Notification }) => void;
  /** Answered once all earlier messages of the sender have been handled. From protocol 2 on. */
  flush: (message: { node?: string }) => boolean;
  /** Earlier versions do not send `data` and do not accept text. */
  interest: (message: { node: string; metrics: boolean; data?: boolean; recording?: boolean; text?: boolean }) => void;
};

const id = text();
const owner: Shape<TrackOwner> = either(object({ peerId: id }), object({ componentId: id }));
const track = { roomId: id, owner, track: object({ id, type: oneOf(['audio', 'video']), metadata: json }) };
const dataMessage = { roomId: id, peerId: id, label: text(), to: list(id), data: either(text(), bytes) };

/** Maximum number of files that an event names. */
const MAX_FILES = 10_000;

/** The fields of every kind of event. */
const fields = {
  roomCreated: { roomId: id },
  roomDeleted: { roomId: id },
  roomCrashed: { roomId: id },
  peerAdded: { roomId: id, peerId: id },
  peerDeleted: { roomId: id, peerId: id },
  peerConnected: { roomId: id, peerId: id },
  peerDisconnected: { roomId: id, peerId: id },
  peerCrashed: { roomId: id, peerId: id, reason: text() },
  peerMetadataUpdated: { roomId: id, peerId: id, metadata: json },
  componentCrashed: { roomId: id, componentId: id },
  trackAdded: track,
  trackRemoved: track,
  trackMetadataUpdated: track,
  hlsPlayable: { roomId: id, componentId: id },
  hlsUploaded: { roomId: id },
  hlsUploadCrashed: { roomId: id },
} satisfies Record<Exclude<Notification['type'], (DataMessage | RecordingEvent)['type']>, unknown>;

const part = { roomId: id, componentId: id, prefix: text(), files: list(text(255), MAX_FILES) };
const recording = { recordingUploaded: part, recordingFailed: { ...part, reason: text() } };

const notification = tagged('type', { ...fields, dataMessage }) as Shape<Notification>;

export const EVENTS_SHAPES: Shapes<EventsProtocol> = {
  notification: takes({ notification, node: origin }),
  metrics: takes({ report: jsonText(json) }),
  data: takes({ notification: tagged('type', { dataMessage }) as Shape<Notification>, node: origin }),
  recording: takes({ notification: tagged('type', recording) as Shape<Notification> }),
  flush: takes({ node: origin }, flag),
  interest: takes({
    node: sender,
    metrics: flag,
    data: optional(flag),
    recording: optional(flag),
    text: optional(flag),
  }),
};
