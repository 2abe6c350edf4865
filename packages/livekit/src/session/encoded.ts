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
import { forLast } from '../for-last.js';
import type { ParticipantRecord } from '../record.js';
import { describeRecord } from './participant-info.js';
import { trackInfo } from './track-info.js';

type Bytes = Uint8Array;

/** By records, which are replaced rather than changed. */
const RECORDS = new WeakMap<ParticipantRecord, Bytes>();
/** By records: what was last said of a participant. All sessions say the same of somebody who has joined. */
const SAID = new WeakMap<ParticipantRecord, { state: ParticipantState; bytes: Bytes }>();
/** Longest encoding that is kept as a whole, beside its parts. */
const MAX_SAID_BYTES = 4 * 1024;
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

/** Returns a ParticipantInfo, which other sessions may have as well. */
export function encodeParticipant(record: ParticipantRecord, state: ParticipantState): Bytes {
  const said = SAID.get(record);
  if (said !== undefined && isSameState(said.state, state)) return said.bytes;
  const bytes = encodedAnew(record, state);
  if (bytes.length <= MAX_SAID_BYTES) SAID.set(record, { state, bytes });

  return bytes;
}

function encodedAnew(record: ParticipantRecord, state: ParticipantState): Bytes {
  const { sid, version, tracks, disconnectReason = 0 } = state;
  const seen = { audio: 0, video: 0 };

  return Buffer.concat([
    encodedRecord(record),
    new Fields(sid.length + 5 * MAX_FIELD)
      .ascii(SID, sid)
      .number(STATE, state.state)
      .number(VERSION, version)
      .number(IS_PUBLISHER, tracks.length > 0 ? 1 : 0)
      .number(REASON, disconnectReason).bytes,
    ...tracks.map((track) => encodedTrack(track, seen[track.kind]++)),
  ]);
}

/** Returns a SignalResponse with a JoinResponse that names these others. */
export function encodeJoin(join: JoinResponse, others: readonly Bytes[]): Bytes {
  return field(JOIN, [join.toBinary(), ...others.map((each) => field(OTHERS, [each]))]);
}

/** Returns a SignalResponse with a ParticipantUpdate. */
export function encodeUpdate(participants: readonly Bytes[]): Bytes {
  const [first] = participants;
  if (first !== undefined && participants.length === 1) return updateOf(first);

  return field(
    UPDATE,
    participants.map((each) => field(PARTICIPANTS, [each])),
  );
}

const updateOf = forLast((participant: Bytes) => field(UPDATE, [field(PARTICIPANTS, [participant])]));

/** How well the media of a participant flows. */
export interface QualityOf {
  participantSid: string;
  quality: ConnectionQuality;
  /** Mean opinion score, 0 to 5. */
  score: number;
}

/** Returns a SignalResponse with a ConnectionQualityUpdate. */
export function encodeQualities(all: readonly QualityOf[]): Bytes {
  const infos = all.map(({ participantSid, quality, score }) => {
    const fields = new Fields(participantSid.length + 3 * MAX_FIELD).ascii(QUALITY_SID, participantSid);

    return field(QUALITIES, [fields.number(QUALITY, quality).float(SCORE, score).bytes]);
  });

  return field(QUALITY_UPDATE, infos);
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

/** Returns true if clients are told the same of a participant in both states. */
function isSameState(a: ParticipantState, b: ParticipantState): boolean {
  return (
    a.sid === b.sid &&
    a.state === b.state &&
    a.version === b.version &&
    a.disconnectReason === b.disconnectReason &&
    a.tracks.length === b.tracks.length &&
    a.tracks.every((track, at) => isSame(track, b.tracks[at]!))
  );
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

/** Longest varint of a number below 2^32, bytes. */
const MAX_VARINT = 5;
/** Longest field without the text in it, bytes. */
const MAX_FIELD = 2 * MAX_VARINT;

/** Returns a length-delimited field. */
function field(no: number, parts: readonly Bytes[]): Bytes {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = Buffer.allocUnsafe(MAX_FIELD + length);
  let at = putVarint(whole, putVarint(whole, 0, (no << 3) | 2), length);
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }

  return whole.subarray(0, at);
}

/** Writes the fields of a message. */
class Fields {
  readonly #whole: Buffer;
  #at = 0;

  constructor(maxBytes: number) {
    this.#whole = Buffer.allocUnsafe(maxBytes);
  }

  /** Adds a text. */
  ascii(no: number, text: string): this {
    this.#at = putVarint(this.#whole, putVarint(this.#whole, this.#at, (no << 3) | 2), text.length);
    this.#at += this.#whole.write(text, this.#at, 'latin1');

    return this;
  }

  /** Adds a number below 2^31, or a flag. */
  number(no: number, value: number): this {
    this.#at = putVarint(this.#whole, putVarint(this.#whole, this.#at, no << 3), value);

    return this;
  }

  float(no: number, value: number): this {
    this.#at = this.#whole.writeFloatLE(value, putVarint(this.#whole, this.#at, (no << 3) | 5));

    return this;
  }

  get bytes(): Bytes {
    return this.#whole.subarray(0, this.#at);
  }
}

/** Writes a number below 2^32, and returns the offset after it. */
function putVarint(bytes: Bytes, at: number, value: number): number {
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at] = rest;

  return at + 1;
}
