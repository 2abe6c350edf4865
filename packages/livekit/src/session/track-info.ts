import {
  AddTrackRequest,
  Encryption_Type,
  SimulcastCodec,
  SimulcastCodecInfo,
  TrackInfo,
  TrackSource,
  TrackType,
  VideoLayer,
  VideoQuality,
} from '@livekit/protocol';
import type { EndpointTrack } from '@bloom/rooms';
import { type CodecName, isCodecName, payloadFormat } from '@bloom/rtp';
import type { TrackKind, Variant } from '@bloom/sfu';
import { SOURCES, type SourceName } from '../grants.js';
import { asRecord } from '../record.js';
import { sidOf } from '../names.js';

/** Metadata of a LiveKit participant's track, as every face shows it. */
export interface TrackMetadata {
  source: SourceName | 'unknown';
  name: string;
  muted: boolean;
  width?: number;
  height?: number;
  /** Present for end-to-end encrypted tracks. */
  encryption?: 'gcm' | 'custom';
}

const SOURCE_OF: Readonly<Record<string, TrackSource>> = {
  camera: TrackSource.CAMERA,
  microphone: TrackSource.MICROPHONE,
  screen_share: TrackSource.SCREEN_SHARE,
  screen_share_audio: TrackSource.SCREEN_SHARE_AUDIO,
  screensharing: TrackSource.SCREEN_SHARE,
  screenshare: TrackSource.SCREEN_SHARE,
};
/** Sources of an endpoint's tracks that declare none, by kind and in order. */
const ASSUMED: Readonly<Record<TrackKind, readonly TrackSource[]>> = {
  audio: [TrackSource.MICROPHONE, TrackSource.SCREEN_SHARE_AUDIO],
  video: [TrackSource.CAMERA, TrackSource.SCREEN_SHARE],
};
/** A variant's quality, and the divisor of its size; lowest first. */
export const LAYERS: readonly (readonly [Variant, VideoQuality, number])[] = [
  ['l', VideoQuality.LOW, 4],
  ['m', VideoQuality.MEDIUM, 2],
  ['h', VideoQuality.HIGH, 1],
];
/** Names that are valid in SDP. */
const STREAM = /^[A-Za-z0-9_-]{1,64}$/;
/** No name of a codec is longer. */
const MAX_CODEC = 16;
/** No picture of a call is larger. */
const MAX_SIZE = 16_384;

export function sourceName(source: TrackSource): SourceName | 'unknown' {
  return SOURCES.find((name) => SOURCE_OF[name] === source) ?? 'unknown';
}

/** Returns the name of the stream that a track is played in sync with; only letters that SDP can carry. */
export function trackStream(track: EndpointTrack, position: number): string {
  const [source, name] = [trackSource(track, position), trackName(track)];
  if (source === TrackSource.CAMERA || source === TrackSource.MICROPHONE) return 'camera';
  if (source === TrackSource.SCREEN_SHARE || source === TrackSource.SCREEN_SHARE_AUDIO) return 'screen';

  return STREAM.test(name) ? name : 'unknown';
}

/** Returns what of a request describes its track; the client may have sent any amount of other data with it. */
export function keptRequest(request: AddTrackRequest): AddTrackRequest {
  const { cid, name, type, source, muted, width, height, encryption, stereo, disableDtx, audioFeatures } = request;
  const codec = request.simulcastCodecs[0]?.codec ?? '';

  return new AddTrackRequest({
    cid,
    name,
    type,
    source,
    muted,
    width,
    height,
    encryption,
    stereo,
    disableDtx,
    audioFeatures: [...audioFeatures],
    layers: request.layers.map(({ quality, width, height, bitrate, ssrc, spatialLayer }) => {
      return new VideoLayer({ quality, width, height, bitrate, ssrc, spatialLayer });
    }),
    simulcastCodecs: codec === '' || codec.length > MAX_CODEC ? [] : [new SimulcastCodec({ codec })],
  });
}

/** Returns the codec in which the client wants to send: `h264`, or `video/H264` as the Go SDK writes. */
export function requestedCodec({ simulcastCodecs }: AddTrackRequest): CodecName | undefined {
  const name = simulcastCodecs[0]?.codec.toLowerCase().replace(/^(audio|video)\//, '') ?? '';

  return isCodecName(name) ? name : undefined;
}

/** Returns the metadata with which a requested track is published. */
export function trackMetadata({ source, name, muted, width, height, encryption }: AddTrackRequest): TrackMetadata {
  const isSized = width > 0 && height > 0 && width <= MAX_SIZE && height <= MAX_SIZE;

  return {
    source: sourceName(source),
    name,
    muted,
    ...(isSized ? { width, height } : {}),
    ...(encryption === Encryption_Type.NONE
      ? {}
      : { encryption: encryption === Encryption_Type.GCM ? 'gcm' : ('custom' as const) }),
  };
}

/** Returns a track as LiveKit clients see it. `position`: how many tracks of its kind its endpoint had before. */
export function trackInfo(track: EndpointTrack, position: number): TrackInfo {
  const { trackId, kind, codec, encodings } = track;
  const metadata = asRecord(track.metadata);
  const { width, height } = sizeOf(metadata);
  const { mimeType } = payloadFormat(codec);
  const layers = kind === 'video' ? layersOf(encodings, { width, height }) : [];

  return new TrackInfo({
    sid: sidOf('TR', trackId),
    type: kind === 'video' ? TrackType.VIDEO : TrackType.AUDIO,
    source: trackSource(track, position),
    name: trackName(track),
    muted: isMuted(track),
    width,
    height,
    simulcast: encodings.length > 0,
    layers,
    mimeType,
    codecs: [new SimulcastCodecInfo({ mimeType, layers })],
    stream: trackStream(track, position),
    encryption: trackEncryption(track),
    disableRed: true,
  });
}

function trackSource({ kind, metadata }: EndpointTrack, position: number): TrackSource {
  const { source, type } = asRecord(metadata);
  for (const word of [source, type]) {
    const known = typeof word === 'string' && Object.hasOwn(SOURCE_OF, word) ? SOURCE_OF[word] : undefined;
    if (known !== undefined) return known;
  }
  if (source === 'unknown') return TrackSource.UNKNOWN;

  return ASSUMED[kind][position] ?? TrackSource.UNKNOWN;
}

function trackName({ metadata }: EndpointTrack): string {
  const { name } = asRecord(metadata);

  return typeof name === 'string' ? name : '';
}

function isMuted({ metadata, muted }: EndpointTrack): boolean {
  const fields = asRecord(metadata);

  return fields['muted'] === true || fields['active'] === false || muted?.publisher === true || muted?.server === true;
}

function sizeOf({ width, height }: Record<string, unknown>): { width: number; height: number } {
  const isSize = (value: unknown): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MAX_SIZE;

  return isSize(width) && isSize(height) ? { width, height } : { width: 0, height: 0 };
}

export function trackEncryption({ metadata }: EndpointTrack): Encryption_Type {
  const { encryption } = asRecord(metadata);
  if (encryption === 'gcm') return Encryption_Type.GCM;

  return encryption === 'custom' ? Encryption_Type.CUSTOM : Encryption_Type.NONE;
}

/** A track without simulcast has the one layer HIGH. */
function layersOf(encodings: readonly Variant[], { width, height }: { width: number; height: number }): VideoLayer[] {
  const present = encodings.length === 0 ? (['h'] as const) : encodings;

  return LAYERS.filter(([variant]) => present.includes(variant)).map(
    ([, quality, divisor], spatialLayer) =>
      new VideoLayer({
        quality,
        width: Math.round(width / divisor),
        height: Math.round(height / divisor),
        spatialLayer,
      }),
  );
}

/** Returns the bitrates that a client announced for the layers of a track. */
export function layerBitrates(layers: readonly VideoLayer[]): Partial<Record<Variant, number>> {
  const bitrates: Partial<Record<Variant, number>> = {};
  for (const [variant, quality] of LAYERS) {
    const bitrate = layers.find((layer) => layer.quality === quality)?.bitrate ?? 0;
    if (bitrate > 0) bitrates[variant] = Math.min(bitrate, 1e9);
  }

  return bitrates;
}

/** What a subscriber wants to see of a track. */
export interface WantedPicture {
  quality: VideoQuality;
  /** Pixels; 0 if unspecified. */
  width: number;
  height: number;
}

/**
 * Returns the variant to send: the smallest layer of at least the wanted size, with 10 % tolerance, or else the one of
 * the wanted quality. Undefined for a track without simulcast.
 */
export function chooseVariant(track: EndpointTrack, wanted: WantedPicture): Variant | undefined {
  if (track.encodings.length === 0) return undefined;
  const { width, height } = sizeOf(asRecord(track.metadata));
  const present = LAYERS.filter(([variant]) => track.encodings.includes(variant));
  const isSized = width > 0 && wanted.width > 0 && wanted.height > 0;
  const fits = present.find(([, quality, divisor]) =>
    isSized
      ? Math.min(width, height) / divisor >= Math.min(wanted.width, wanted.height) * 0.9
      : quality >= wanted.quality,
  );

  return (fits ?? present.at(-1))?.[0];
}
