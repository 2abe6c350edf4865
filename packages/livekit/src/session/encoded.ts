/**
 * Encodings of messages that name everybody in a room. Each session describes the same participants, so their parts
 * are encoded once per process and copied into the messages of all.
 */
import {
  JoinResponse,
  type ParticipantInfo_State,
  ParticipantInfo,
  ParticipantUpdate,
  SignalResponse,
} from '@livekit/protocol';
import type { EndpointTrack } from '@bloom/rooms';
import type { ParticipantRecord } from '../record.js';
import { describeRecord } from './participant-info.js';
import { trackInfo } from './track-info.js';

type Bytes = Uint8Array;

/** By records and tracks, which are replaced rather than changed. */
const RECORDS = new WeakMap<ParticipantRecord, Bytes>();
const TRACKS = new WeakMap<EndpointTrack, { position: number; bytes: Bytes }>();

const numberOf = (message: { fields: { findJsonName(name: string): { no: number } | undefined } }, name: string) =>
  message.fields.findJsonName(name)!.no;
const OTHERS = numberOf(JoinResponse, 'otherParticipants');
const PARTICIPANTS = numberOf(ParticipantUpdate, 'participants');
const JOIN = numberOf(SignalResponse, 'join');
const UPDATE = numberOf(SignalResponse, 'update');

/** What is said of a participant besides its record. */
export interface ParticipantState {
  sid: string;
  state: ParticipantInfo_State;
  version: number;
  /** Without any, the participant is no publisher. */
  tracks: readonly EndpointTrack[];
  disconnectReason?: ParticipantInfo['disconnectReason'];
}

/** Returns a ParticipantInfo. */
export function encodeParticipant(record: ParticipantRecord, { tracks, ...state }: ParticipantState): Bytes {
  const own = new ParticipantInfo();
  Object.assign(own, state, { isPublisher: tracks.length > 0 });
  const seen = { audio: 0, video: 0 };

  return Buffer.concat([
    encodedRecord(record),
    own.toBinary(),
    ...tracks.map((track) => encodedTrack(track, seen[track.kind]++)),
  ]);
}

/** Returns a SignalResponse with a JoinResponse that names these others. */
export function encodeJoin(join: JoinResponse, others: readonly Bytes[]): Bytes {
  return field(JOIN, Buffer.concat([join.toBinary(), ...others.map((each) => field(OTHERS, each))]));
}

/** Returns a SignalResponse with a ParticipantUpdate. */
export function encodeUpdate(participants: readonly Bytes[]): Bytes {
  return field(UPDATE, Buffer.concat(participants.map((each) => field(PARTICIPANTS, each))));
}

function encodedRecord(record: ParticipantRecord): Bytes {
  let bytes = RECORDS.get(record);
  if (bytes === undefined) {
    bytes = describeRecord(record).toBinary();
    RECORDS.set(record, bytes);
  }

  return bytes;
}

/** Returns the field of a ParticipantInfo. */
function encodedTrack(track: EndpointTrack, position: number): Bytes {
  let known = TRACKS.get(track);
  if (known?.position !== position) {
    known = { position, bytes: new ParticipantInfo({ tracks: [trackInfo(track, position)] }).toBinary() };
    TRACKS.set(track, known);
  }

  return known.bytes;
}

/** Returns a length-delimited field. */
function field(no: number, bytes: Bytes): Bytes {
  return Buffer.concat([varint((no << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Bytes {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Uint8Array.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}
