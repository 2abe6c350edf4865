/** Starts of the payloads of scalable video, as Chromium sends it; the rest of a picture is noise. */

/** Codecs of the video that a `Publisher` sends. */
export type LoadCodec = 'vp8' | 'h264' | 'vp9' | 'av1';

/** Temporal layers of successive pictures. */
const TEMPORAL = [0, 2, 1, 2];
/** Parts of a picture's packets up to the end of each size: three of VP9, two of AV1. */
const SIZES = { vp9: [0.1, 0.3, 1], av1: [0.25, 1] };
/** The first dependency descriptor of Chromium 156 in the mode L2T3_KEY; templates 1 to 9 are of later frames. */
const DESCRIPTOR = Buffer.from(
  'c00001800514853aaaa8018004004002a02a0060010015d34514174d144c7008743216511185432768077804300ef80868',
  'hex',
);
const NAMED_BYTES = 3;

/** One packet of a picture. */
export interface Place {
  /** Number of the picture, and of the pictures since the last key picture. */
  picture: number;
  sinceKey: number;
  /** Position among the packets of the picture. */
  packet: number;
  packets: number;
}

interface Layer {
  spatial: number;
  temporal: number;
  isStart: boolean;
  isEnd: boolean;
}

function layerOf({ sinceKey, packet, packets }: Place, codec: 'vp9' | 'av1'): Layer {
  const ends = SIZES[codec].map((part, size) => Math.max(size + 1, Math.round(part * packets)));
  const spatial = ends.findIndex((end) => packet < end);
  return {
    spatial,
    temporal: TEMPORAL[sinceKey % TEMPORAL.length]!,
    isStart: packet === (ends[spatial - 1] ?? 0),
    isEnd: packet === ends[spatial]! - 1,
  };
}

/** Writes a VP9 descriptor of the mode L3T3_KEY (RFC 9628 section 4.2). */
export function writeVp9(payload: Buffer, place: Place, tl0PicIdx: number): void {
  const { spatial, temporal, isStart, isEnd } = layerOf(place, 'vp9');
  const isKey = place.sinceKey === 0;
  payload[0] = 0xa0 | (isKey ? 0 : 0x40) | (isStart ? 0x08 : 0) | (isEnd ? 0x04 : 0);
  payload.writeUInt16BE(0x8000 | (place.picture & 0x7fff), 1);
  payload[3] = (temporal << 5) | 0x10 | (spatial << 1) | (isKey && spatial > 0 ? 1 : 0);
  payload[4] = tl0PicIdx & 0xff;
}

/** Writes an AV1 aggregation header of the mode L2T3_KEY. Returns the packet's dependency descriptor. */
export function writeAv1(payload: Buffer, place: Place): Buffer {
  const { spatial, temporal, isStart, isEnd } = layerOf(place, 'av1');
  const startsSequence = place.sinceKey === 0 && place.packet === 0;
  payload[0] = (isStart ? 0 : 0x80) | (isEnd ? 0 : 0x40) | 0x10 | (startsSequence ? 0x08 : 0);
  const template = (place.sinceKey === 0 ? 0 : [1, 2, 3][temporal]!) + 5 * spatial;
  const named = Buffer.alloc(NAMED_BYTES);
  named[0] = (isStart ? 0x80 : 0) | (isEnd ? 0x40 : 0) | template;
  named.writeUInt16BE((place.picture * SIZES.av1.length + spatial) & 0xffff, 1);

  return startsSequence ? Buffer.concat([named, DESCRIPTOR.subarray(NAMED_BYTES)]) : named;
}

/** Writes a fragment of H.264 (RFC 6184 section 5.8), or the parameter set that begins a key picture. */
export function writeH264(payload: Buffer, { sinceKey, packet, packets }: Place): void {
  const isKey = sinceKey === 0;
  payload[0] = isKey && packet === 0 ? 0x67 : 0x7c;
  payload[1] = (packet === 0 ? 0x80 : 0) | (packet === packets - 1 ? 0x40 : 0) | (isKey ? 5 : 1);
}

/** Returns whether all receivers of the picture need it. */
export function isBase({ sinceKey }: Place): boolean {
  return TEMPORAL[sinceKey % TEMPORAL.length] === 0;
}
