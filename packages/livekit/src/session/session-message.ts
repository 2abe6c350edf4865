/**
 * What a session and the holder of its client's websocket say to each other, as texts that cross nodes: one letter and
 * what follows it.
 */
import { SignalRequest } from '@livekit/protocol';
import { decode, type FieldCount } from '../decode.js';
import { forLast } from '../for-last.js';
import type { Claims, Grants } from '../grants.js';
import type { ParticipantRecord } from '../record.js';
import type { OwnFields } from './own-record.js';

/** The room as the client sees it. */
export interface JoinedRoom {
  sid: string;
  name: string;
  /** Unix milliseconds. */
  createdAt: number;
  metadata: string;
  /** 0 = no limit. */
  maxParticipants: number;
  departureTimeout: number;
}

export interface JoinMessage {
  record: ParticipantRecord;
  grants: Grants;
  room: JoinedRoom;
  /** The client's protocol number. */
  protocol: number;
  autoSubscribe: boolean;
  /** The client receives on a connection of its own, on which the server offers. */
  twoConnections?: true;
  /** Name of the API key that signed the client's token. */
  issuer: string;
  nodeId: string;
  /** Release of Bloom. */
  release: string;
  /** The client's first requests, binary SignalRequest in base64. */
  requests: readonly string[];
}

export type ToSession =
  | { type: 'join'; join: JoinMessage }
  /** A frame of the client. */
  | { type: 'request'; request: SignalRequest }
  /** The client has lost its websocket. */
  | { type: 'away' }
  /** The client has returned on another websocket; with the claims of its token if that is at another node. */
  | { type: 'resume'; claims?: Claims };

/** Why the client has to leave, and what it should do next. */
export interface Leaving {
  reason: number;
  action: number;
}

export type FromSession =
  /** A frame for the client: binary SignalResponse. */
  | { type: 'frame'; bytes: Uint8Array }
  /** The client's media is connected. */
  | { type: 'connected' }
  /** The participant leaves the room. */
  | { type: 'leave'; leaving: Leaving }
  /** The client's permissions have changed, so its token is out of date. */
  | { type: 'grants'; grants: Grants; record: ParticipantRecord }
  /** The client has unmuted a track that the server has muted. */
  | { type: 'unmuted'; trackId: string }
  /** The client has changed what others see of it. */
  | { type: 'record'; fields: OwnFields };

export const toSession = {
  join: (join: JoinMessage): string => `j${JSON.stringify(join)}`,
  request: (bytes: Uint8Array): string => `f${asBuffer(bytes).toString('base64')}`,
  away: (): string => 'a',
  resume: (claims?: Claims): string => (claims === undefined ? 'r' : `r${JSON.stringify(claims)}`),
};

export const fromSession = {
  /** A binary SignalResponse. */
  frame: forLast((bytes: Uint8Array): string => `f${asBuffer(bytes).toString('base64')}`),
  connected: (): string => 'm',
  leave: (leaving: Leaving): string => `e${JSON.stringify(leaving)}`,
  grants: (grants: Grants, record: ParticipantRecord): string => `g${JSON.stringify({ grants, record })}`,
  unmuted: (trackId: string): string => `v${trackId}`,
  record: (fields: OwnFields): string => `u${JSON.stringify(fields)}`,
};

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Parses a text of the holder; undefined for a frame that cannot be decoded. */
export function readToSession(text: string): ToSession | undefined {
  const rest = text.slice(1);
  if (text[0] === 'j') return { type: 'join', join: JSON.parse(rest) as JoinMessage };
  if (text[0] === 'a') return { type: 'away' };
  if (text[0] === 'r') return rest === '' ? { type: 'resume' } : { type: 'resume', claims: JSON.parse(rest) as Claims };
  const request = readRequest(Buffer.from(rest, 'base64'));

  return request === undefined ? undefined : { type: 'request', request };
}

/** Returns the frame in a text of a session: the same bytes for the same text. */
const bytesOf = forLast((text: string): Uint8Array => Buffer.from(text.slice(1), 'base64'));

export function readFromSession(text: string): FromSession {
  if (text[0] === 'f') return { type: 'frame', bytes: bytesOf(text) };
  const rest = text.slice(1);
  switch (text[0]) {
    case 'v':
      return { type: 'unmuted', trackId: rest };
    case 'm':
      return { type: 'connected' };
    case 'e':
      return { type: 'leave', leaving: JSON.parse(rest) as Leaving };
    case 'g':
      return { type: 'grants', ...(JSON.parse(rest) as { grants: Grants; record: ParticipantRecord }) };
    default:
      return { type: 'record', fields: JSON.parse(rest) as OwnFields };
  }
}

/**
 * Returns a client's frame, or undefined if it cannot be decoded or contains nothing known. `count`: see `decode`.
 */
export function readRequest(bytes: Uint8Array, count?: FieldCount): SignalRequest | undefined {
  try {
    const request = decode(SignalRequest, bytes, count === undefined ? {} : { count });
    return request.message.case === undefined ? undefined : request;
  } catch {
    return undefined;
  }
}
