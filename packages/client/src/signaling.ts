// Media events of docs/reference/peer-signaling.md that this client uses.
import { type Bytes, decodeFrame, encodeFrame } from './frame.js';

/** Variant of a simulcast track: low, medium or high. */
export type Variant = 'l' | 'm' | 'h';
export const VARIANTS: readonly Variant[] = ['l', 'm', 'h'];

/** Protocol additions that this client uses if the server supports them (docs/reference/peer-signaling.md). */
export const FEATURES = [
  'pause',
  'data',
  'trackState',
  'trackRefused',
  'permissions',
  'trackUnavailable',
  'codecs',
  'fallback',
  'move',
  'standby',
];

/** What a participant may do. */
export interface Permissions {
  /** Kinds of media that it may publish; `data` are messages to other clients. */
  readonly publish: readonly ('audio' | 'video' | 'data')[];
  /** Whether it receives the tracks of the others. */
  readonly subscribe: boolean;
  /** Whether the others see its metadata. */
  readonly metadata: boolean;
}

export interface WireTrack {
  readonly metadata: unknown;
  /** Earlier servers omit it. */
  readonly kind?: 'audio' | 'video';
  readonly encrypted?: boolean;
  readonly simulcastConfig: { readonly enabled: boolean; readonly activeEncodings: readonly Variant[] };
}

export interface WireEndpoint {
  readonly id: string;
  readonly type: string;
  readonly metadata: unknown;
  readonly tracks?: Readonly<Record<string, WireTrack>>;
}

export interface TurnServer {
  readonly serverAddr: string;
  readonly serverPort: number;
  readonly transport: 'udp' | 'tcp' | 'tls';
  readonly username: string;
  readonly password: string;
}

export interface OfferData {
  readonly tracksTypes: { readonly audio?: number; readonly video?: number };
  readonly integratedTurnServers: readonly TurnServer[];
}

interface OfTrack {
  readonly trackId: string;
}
/** Whether somebody needs the second encoding of a published track. */
export interface FallbackWanted extends OfTrack {
  readonly wanted: boolean;
}
interface OfEndpoint {
  readonly endpointId: string;
}

/** Events from the server, with `custom` unwrapped. */
export type ServerEvent =
  | Event<'connected', { id: string; otherEndpoints: readonly WireEndpoint[]; features?: readonly string[] }>
  | Event<'endpointAdded', WireEndpoint>
  | Event<'endpointUpdated', { id: string; metadata: unknown }>
  | Event<'endpointRemoved', { id: string }>
  | Event<'tracksAdded', OfEndpoint & { tracks: Readonly<Record<string, WireTrack>> }>
  | Event<'tracksRemoved', OfEndpoint & { trackIds: readonly string[] }>
  | Event<'trackUpdated', OfEndpoint & OfTrack & { metadata: unknown }>
  | Event<'encodingSwitched', OfEndpoint & OfTrack & { encoding: Variant }>
  | Event<'vadNotification', OfTrack & { status: string }>
  | Event<'bandwidthEstimation', { estimation: number }>
  | Event<'trackMutedByServer', OfTrack & { muted: boolean }>
  | Event<'fallbackWanted', FallbackWanted>
  | Event<'trackMuted', OfTrack & { muted: boolean; by: 'publisher' | 'server' }>
  | Event<'trackStalled', OfTrack & { stalled: boolean }>
  | Event<'trackUnavailable', OfTrack & { reason: 'NO_CODEC' | 'NO_KEY' }>
  | Event<'permissions', Permissions>
  | Event<'roomMessage', { topic: string; data: unknown }>
  /** `url`: the websocket to use instead of the current one. */
  | Event<'roomMoved', { url?: string }>
  | Event<'othersMoved', object>
  /** Where the room goes on if its node is lost; without scheme. */
  | Event<'standby', { url: string }>
  | Event<'dataChannelClosed', { label: string; reason: string }>
  | Event<'offerData', OfferData>
  | Event<'sdpAnswer', { sdp: string; midToTrackId: Readonly<Record<string, string>> }>
  | Event<'candidate', { candidate: string; sdpMLineIndex: number }>;

interface Event<Type extends string, Data> {
  readonly type: Type;
  readonly data: Data;
}

/** What arrives on the socket. Events of a newer server are `unknown`. */
export type Received = { readonly type: 'authenticated' | 'unknown'; readonly data?: undefined } | ServerEvent;

/**
 * Decodes one frame from the server.
 * @throws SyntaxError when a media event is not JSON.
 */
export function decode(frame: ArrayBuffer): Received {
  const message = decodeFrame(frame);
  if (message.type !== 'mediaEvent') return message;
  let event = JSON.parse(message.data) as { type: string; data?: unknown };
  while (event.type === 'custom') event = event.data as typeof event;
  return event as Received;
}

export function encodeAuthRequest(token: string): Bytes {
  return encodeFrame('authRequest', token);
}

export function encodeEvent(type: string, data?: unknown): Bytes {
  return encodeFrame('mediaEvent', JSON.stringify({ type, data }));
}

/** Encodes a media engine event, which travels inside `custom`. */
export function encodeCustom(type: string, data?: unknown): Bytes {
  return encodeEvent('custom', { type, data });
}
