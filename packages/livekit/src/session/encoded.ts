/**
 * Encodings of messages that name everybody in a room, written without the library's objects: each join costs some for
 * everybody. Each session describes the same participants, so their parts are encoded once per process and copied into
 * the messages of all.
 */
import {
  type ConnectionQuality,
  ConnectionQualityInfo,
  ConnectionQualityUpdate,
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

/** By records, which are replaced rather than changed. */
const RECORDS = new WeakMap<ParticipantRecord, Bytes>();
/**
 * By a part that a track keeps. Each session replaces the description of a track that changes by one of its own, with
 * the same parts.
 */
const TRACKS = new WeakMap<EndpointTrack['encodings'], { track: EndpointTrack; position: number; bytes: Bytes }>();

const numberOf = (message: { fields: { findJsonName(name: string): { no: number } | undefined } }, name: string) =>
  message.fields.findJsonName(name)!.no;
const OTHERS = numberOf(JoinResponse, 'otherParticipants');
const PARTICIPANTS = numberOf(ParticipantUpdate, 'participants');
const JOIN = numberOf(SignalResponse, 'join');
const UPDATE = numberOf(SignalResponse, 'update');
const SID = numberOf(ParticipantInfo, 'sid');
const STATE = numberOf(ParticipantInfo, 'state');
const VERSION = numberOf(ParticipantInfo, 'version');
const IS_PUBLISHER = numberOf(ParticipantInfo, 'isPublisher');
const REASON = numberOf(ParticipantInfo, 'disconnectReason');
const QUALITY_UPDATE = numberOf(SignalResponse, 'connectionQuality');
const QUALITIES = numberOf(ConnectionQualityUpdate, 'updates');
const QUALITY_SID = numberOf(ConnectionQualityInfo, 'participantSid');
const QUALITY = numberOf(ConnectionQualityInfo, 'quality');
const SCORE = numberOf(ConnectionQualityInfo, 'score');

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
export function encodeParticipant(
  record: ParticipantRecord,
  { sid, state, version, tracks, disconnectReason = 0 }: ParticipantState,
): Bytes {
  const seen = { audio: 0, video: 0 };

  return Buffer.concat([
    encodedRecord(record),
    sidAnd(SID, sid, [
      [STATE, state],
      [VERSION, version],
      [IS_PUBLISHER, tracks.length > 0 ? 1 : 0],
      [REASON, disconnectReason],
    ]),
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

/** How well the media of a participant flows. */
export interface QualityOf {
  participantSid: string;
  quality: ConnectionQuality;
  /** Mean opinion score, 0 to 5. */
  score: number;
}

/** Returns a SignalResponse with a ConnectionQualityUpdate. */
export function encodeQualities(all: readonly QualityOf[]): Bytes {
  const infos = all.map(({ participantSid, quality, score }) =>
    Buffer.concat([sidAnd(QUALITY_SID, participantSid, [[QUALITY, quality]]), float(SCORE, score)]),
  );

  return field(QUALITY_UPDATE, Buffer.concat(infos.map((each) => field(QUALITIES, each))));
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
  let known = TRACKS.get(track.encodings);
  if (known?.position !== position || !isSame(known.track, track)) {
    known = { track, position, bytes: new ParticipantInfo({ tracks: [trackInfo(track, position)] }).toBinary() };
    TRACKS.set(track.encodings, known);
  }

  return known.bytes;
}

/** Returns true if clients are told the same of both. */
function isSame(a: EndpointTrack, b: EndpointTrack): boolean {
  return (
    a.trackId === b.trackId &&
    a.kind === b.kind &&
    a.codec === b.codec &&
    a.metadata === b.metadata &&
    a.muted?.publisher === b.muted?.publisher &&
    a.muted?.server === b.muted?.server
  );
}

/** Returns a length-delimited field. */
function field(no: number, bytes: Bytes): Bytes {
  const whole = Buffer.allocUnsafe(2 * MAX_VARINT + bytes.length);
  const at = putVarint(whole, putVarint(whole, 0, (no << 3) | 2), bytes.length);
  whole.set(bytes, at);

  return whole.subarray(0, at + bytes.length);
}

/** Longest varint of a number below 2^32, bytes. */
const MAX_VARINT = 5;

/** Returns a field with a sid, which is ASCII, and fields with numbers or flags below 2^31. */
function sidAnd(no: number, sid: string, numbers: readonly (readonly [no: number, value: number])[]): Bytes {
  const whole = Buffer.allocUnsafe(2 * MAX_VARINT * (1 + numbers.length) + sid.length);
  let at = putVarint(whole, putVarint(whole, 0, (no << 3) | 2), sid.length);
  at += whole.write(sid, at, 'latin1');
  for (const [each, value] of numbers) at = putVarint(whole, putVarint(whole, at, each << 3), value);

  return whole.subarray(0, at);
}

/** Returns a field with a fraction. */
function float(no: number, value: number): Bytes {
  const whole = Buffer.allocUnsafe(MAX_VARINT + 4);
  const at = putVarint(whole, 0, (no << 3) | 5);

  return whole.subarray(0, whole.writeFloatLE(value, at));
}

/** Writes a number below 2^32, and returns the offset after it. */
function putVarint(bytes: Bytes, at: number, value: number): number {
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at] = rest;

  return at + 1;
}
