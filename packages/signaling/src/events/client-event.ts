import { type Bitrates, isVariant, type OfferedTracks } from '@bloom/negotiation';
import type { Variant } from '@bloom/sfu';
import { isRecord, MAX_JSON_DEPTH, nestsDeeper } from './json.js';

/** Maximum length of an event's text, in UTF-16 code units. */
export const MAX_EVENT_LENGTH = 1024 * 1024;
const MAX_TRACK_ID_LENGTH = 1024;
/** Above what any camera sends. Keeps sums over tracks and variants finite and far below the range of REMB. */
const MAX_BITRATE_BPS = 1e9;

export type SdpOfferEvent = OfferedTracks & { type: 'sdpOffer'; sdp: string };

export type ClientEvent =
  /** `features`: protocol additions that the client knows; arbitrary strings. */
  | { type: 'connect'; metadata: unknown; features: readonly unknown[] }
  | { type: 'disconnect' }
  | { type: 'updateEndpointMetadata'; metadata: unknown }
  | { type: 'updateTrackMetadata'; trackId: string; metadata: unknown }
  | { type: 'setEncoding'; trackId: string; encoding: Variant; enabled: boolean }
  | { type: 'setMuted'; trackId: string; muted: boolean }
  | { type: 'renegotiateTracks' }
  | SdpOfferEvent
  | { type: 'setTargetTrackVariant'; trackId: string; variant: Variant }
  | { type: 'setTrackPaused'; trackId: string; paused: boolean }
  | { type: 'trackVariantBitrates'; trackId: string; bitrates: Bitrates }
  /** The client has a connection to the node that its room has moved to. */
  | { type: 'moved' }
  /** Valid but without effect: candidates (the server is ICE-lite), priorities, preferred sizes. */
  | { type: 'noted' }
  /** Not a known event. `reason` contains nothing the client sent. */
  | { type: 'invalid'; reason: string };

/** Names the library that announces these additions; those of Jellyfish know none. */
export function clientOf(features: readonly unknown[]): 'bloom' | 'jellyfish' {
  return features.length > 0 ? 'bloom' : 'jellyfish';
}

/** Parses a media event. Never throws: an unusable event is `invalid`. */
export function parseClientEvent(text: string): ClientEvent {
  if (text.length > MAX_EVENT_LENGTH) return invalid('too long');
  if (nestsDeeper(text, MAX_JSON_DEPTH)) return invalid('nested too deep');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return invalid('not JSON');
  }
  if (!isRecord(value)) return invalid('not an object');
  if (typeof value['type'] !== 'string') return invalid('no type');
  if (value['type'] !== 'custom') return parsePlain(value['type'], value['data']) ?? parseCustom(value);
  return isRecord(value['data']) ? parseCustom(value['data']) : invalid('custom without data');
}

function parsePlain(type: string, data: unknown): ClientEvent | undefined {
  const fields = isRecord(data) ? data : {};
  switch (type) {
    case 'connect': {
      const { metadata = null, features } = fields;
      return { type, metadata, features: Array.isArray(features) ? features : [] };
    }
    case 'disconnect':
      return { type };
    case 'updateEndpointMetadata':
      return { type, metadata: fields['metadata'] ?? null };
    case 'updateTrackMetadata': {
      const { trackId } = fields;
      if (!isTrackId(trackId)) return invalid('updateTrackMetadata without a track id');
      return { type, trackId, metadata: fields['trackMetadata'] ?? null };
    }
    case 'enableTrackEncoding':
    case 'disableTrackEncoding': {
      const { trackId, encoding } = fields;
      if (!isTrackId(trackId) || !isVariant(encoding)) return invalid('an encoding without its track or name');
      return { type: 'setEncoding', trackId, encoding, enabled: type === 'enableTrackEncoding' };
    }
    case 'muteTrack':
    case 'unmuteTrack': {
      const { trackId } = fields;
      if (!isTrackId(trackId)) return invalid('muteTrack without a track id');
      return { type: 'setMuted', trackId, muted: type === 'muteTrack' };
    }
    default:
      return undefined;
  }
}

/** Parses the events wrapped in `custom`, which are also accepted unwrapped. */
function parseCustom({ type, data }: Record<string, unknown>): ClientEvent {
  const fields = isRecord(data) ? data : {};
  switch (type) {
    case 'renegotiateTracks':
    case 'moved':
      return { type };
    case 'sdpOffer':
      return parseSdpOffer(fields);
    case 'setTargetTrackVariant': {
      const { trackId, variant } = fields;
      if (!isTrackId(trackId) || !isVariant(variant)) return invalid('a target without its track or variant');
      return { type, trackId, variant };
    }
    case 'setTrackPaused': {
      const { trackId, paused } = fields;
      if (!isTrackId(trackId) || typeof paused !== 'boolean') return invalid('a pause without its track or state');
      return { type, trackId, paused };
    }
    case 'trackVariantBitrates': {
      const { trackId, variantBitrates } = fields;
      const bitrates = parseBitrates(variantBitrates);
      if (!isTrackId(trackId) || bitrates === undefined) return invalid('bitrates without their track or values');
      return { type, trackId, bitrates };
    }
    case 'candidate':
    case 'prioritizeTrack':
    case 'unprioritizeTrack':
    case 'preferedVideoSizes':
      return { type: 'noted' };
    default:
      return invalid('unknown type');
  }
}

function parseSdpOffer(fields: Record<string, unknown>): ClientEvent {
  const { sdpOffer, trackIdToTrackMetadata, trackIdToTrackBitrates, midToTrackId, encrypted, fallbacks } = fields;
  if (!isRecord(sdpOffer) || sdpOffer['type'] !== 'offer' || typeof sdpOffer['sdp'] !== 'string') {
    return invalid('sdpOffer without an offer');
  }
  if (!isRecord(trackIdToTrackMetadata)) return invalid('sdpOffer without the metadata of tracks');
  if (midToTrackId !== null && !isRecord(midToTrackId)) return invalid('sdpOffer without the tracks of mids');

  const bitrates = new Map<string, Bitrates>();
  if (isRecord(trackIdToTrackBitrates)) {
    for (const [trackId, value] of Object.entries(trackIdToTrackBitrates)) {
      const parsed = parseBitrates(value);
      if (parsed !== undefined) bitrates.set(trackId, parsed);
    }
  }
  return {
    type: 'sdpOffer',
    sdp: sdpOffer['sdp'],
    midToTrackId: trackIds(midToTrackId ?? {}),
    metadata: new Map(Object.entries(trackIdToTrackMetadata)),
    bitrates,
    ...(encrypted === true ? { encrypted } : {}),
    ...(isRecord(fallbacks) ? { fallbacks: trackIds(fallbacks) } : {}),
  };
}

/** Returns the entries whose values are ids of tracks. */
function trackIds(byMid: Record<string, unknown>): Map<string, string> {
  return new Map(Object.entries(byMid).filter((entry): entry is [string, string] => isTrackId(entry[1])));
}

/**
 * Parses bits per second, capped at `MAX_BITRATE_BPS`. A plain number applies to variant `h`; keys other than l, m and
 * h are dropped.
 */
function parseBitrates(value: unknown): Bitrates | undefined {
  if (isBitrate(value)) return { h: Math.min(value, MAX_BITRATE_BPS) };
  if (!isRecord(value)) return undefined;
  const bitrates: Bitrates = {};
  for (const variant of ['l', 'm', 'h'] as const) {
    const bitrate = value[variant];
    if (isBitrate(bitrate)) bitrates[variant] = Math.min(bitrate, MAX_BITRATE_BPS);
  }
  return bitrates;
}

function isBitrate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isTrackId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TRACK_ID_LENGTH;
}

function invalid(reason: string): ClientEvent {
  return { type: 'invalid', reason };
}
