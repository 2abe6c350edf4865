/** RTP as browsers send it, for tests and benchmarks: headers and payload descriptors are real, pictures are noise. */
import type { ExtensionIds, InboundTrack, OutboundSlot } from '../media-engine.js';

const EXTENSIONS = { mid: 4, transportCc: 3, rid: 10, repairedRid: 11, audioLevel: 1, dependencies: 13 } as const;
const FEEDBACK = ['nack', 'nack pli', 'ccm fir', 'transport-cc'];

export const VP8 = { name: 'vp8', payloadType: 96, clockRate: 90_000, rtxPayloadType: 97, feedback: FEEDBACK } as const;
export const H264 = {
  name: 'h264',
  payloadType: 102,
  clockRate: 90_000,
  rtxPayloadType: 103,
  feedback: FEEDBACK,
} as const;
export const VP9 = { name: 'vp9', payloadType: 98, clockRate: 90_000, rtxPayloadType: 99, feedback: FEEDBACK } as const;
export const AV1 = { name: 'av1', payloadType: 45, clockRate: 90_000, rtxPayloadType: 46, feedback: FEEDBACK } as const;
/** The first dependency descriptor of Chromium 156 in the mode L2T3_KEY; templates 1 to 9 are of later frames. */
const DESCRIPTOR = Buffer.from(
  'c00001800514853aaaa8018004004002a02a0060010015d34514174d144c7008743216511185432768077804300ef80868',
  'hex',
);
const OPUS = { name: 'opus', payloadType: 111, clockRate: 48_000, feedback: ['transport-cc'] } as const;

export interface SourceOptions {
  ssrc: number;
  payloadType: number;
  mid?: string;
  rid?: string;
  repairedRid?: string;
  firstSequence?: number;
  firstTimestamp?: number;
}

interface PacketExtras {
  /** Further header extensions, as id and value. */
  more?: [number, Buffer][];
  padding?: number;
}

interface PacketFields {
  payloadType: number;
  sequence: number;
  timestamp: number;
  ssrc: number;
  marker: boolean;
  payload: Buffer;
  /** Id and data of each element; in the two-byte form if one is long. */
  elements: [number, Buffer][];
  padding?: number;
}

function rtpPacket(fields: PacketFields): Buffer {
  const { elements, payload, padding = 0 } = fields;
  const header = Buffer.alloc(12);
  header[0] = 0x80 | (elements.length > 0 ? 0x10 : 0) | (padding > 0 ? 0x20 : 0);
  header[1] = (fields.marker ? 0x80 : 0) | fields.payloadType;
  header.writeUInt16BE(fields.sequence & 0xffff, 2);
  header.writeUInt32BE(fields.timestamp >>> 0, 4);
  header.writeUInt32BE(fields.ssrc >>> 0, 8);
  const parts: Buffer[] = [header];
  if (elements.length > 0) {
    const isLong = elements.some(([, { length }]) => length > 16);
    const headOf = (id: number, length: number): number[] => (isLong ? [id, length] : [(id << 4) | (length - 1)]);
    const body = Buffer.concat(elements.flatMap(([id, data]) => [Buffer.from(headOf(id, data.length)), data]));
    const padded = Buffer.alloc(Math.ceil(body.length / 4) * 4);
    body.copy(padded);
    const head = Buffer.from([...(isLong ? [0x10, 0] : [0xbe, 0xde]), 0, padded.length / 4]);
    parts.push(head, padded);
  }
  parts.push(payload);
  if (padding > 0) parts.push(Buffer.alloc(padding, 0).fill(padding, padding - 1));
  return Buffer.concat(parts);
}

/** Numbers the packets of one transport for transport-wide feedback. */
export class TransportCounter {
  next = 0;
}

/** One outgoing stream of a client. */
export class SyntheticSource {
  sequence: number;
  timestamp: number;
  pictureId = 100;
  tl0 = 10;
  keyIdx = 3;
  transport: TransportCounter | undefined;
  /** Payload byte that marks the packets of this source. */
  readonly mark: number;
  /** The last packets by sequence number, to answer NACKs. */
  readonly sent = new Map<number, PacketFields>();

  constructor(readonly options: SourceOptions) {
    this.sequence = options.firstSequence ?? 1000;
    this.timestamp = options.firstTimestamp ?? 5_000_000;
    this.mark = options.ssrc & 0xff;
  }

  /**
   * Returns the packets of one VP8 frame. `elapsedMs`: time since the previous frame. `synchronises`: it refers to the
   * base layer only.
   */
  vp8Frame({
    key = false,
    packets = 2,
    size = 100,
    elapsedMs = 33,
    temporal = 0,
    synchronises = false,
  } = {}): Buffer[] {
    this.timestamp = (this.timestamp + Math.round(elapsedMs * 90)) >>> 0;
    this.pictureId = (this.pictureId + 1) & 0x7fff;
    if (temporal === 0) this.tl0 = (this.tl0 + 1) & 0xff;
    if (key) this.keyIdx = (this.keyIdx + 1) & 0x1f;
    return Array.from({ length: packets }, (_, i) => {
      const descriptor = Buffer.from([
        0x80 | (i === 0 ? 0x10 : 0),
        0xf0,
        0x80 | (this.pictureId >>> 8),
        this.pictureId & 0xff,
        this.tl0,
        (temporal << 6) | (synchronises ? 0x20 : 0) | this.keyIdx,
      ]);
      const payload = Buffer.alloc(size, this.mark);
      if (i === 0) payload[0] = key ? 0 : 1;
      return this.packet(Buffer.concat([descriptor, payload]), i === packets - 1);
    });
  }

  /**
   * Returns one picture of scalable VP9: `sizes` are the bytes of its spatial layers, each in packets of at most 1,000
   * bytes. Upper layers refer to lower ones in key pictures only, as in the mode L3T3_KEY. A layer of 0 bytes is
   * skipped; as from Chromium's encoder, only the highest layer has the marker.
   */
  vp9Picture({ key = false, sizes = [100], temporal = 0, elapsedMs = 33 } = {}): Buffer[] {
    this.timestamp = (this.timestamp + Math.round(elapsedMs * 90)) >>> 0;
    this.pictureId = (this.pictureId + 1) & 0x7fff;
    if (temporal === 0) this.tl0 = (this.tl0 + 1) & 0xff;
    return sizes.flatMap((size, spatial) => {
      const count = Math.ceil(size / 1000);
      return Array.from({ length: count }, (_, i) => {
        const bounds = (i === 0 ? 0x08 : 0) | (i === count - 1 ? 0x04 : 0);
        const layer = (temporal << 5) | 0x10 | (spatial << 1) | (key && spatial > 0 ? 1 : 0);
        const first = 0xa0 | (key ? 0 : 0x40) | bounds;
        const numbers = [0x80 | (this.pictureId >>> 8), this.pictureId & 0xff, layer, this.tl0];
        const payload = Buffer.concat([
          Buffer.from([first, ...numbers]),
          Buffer.alloc(Math.ceil(size / count), this.mark),
        ]);
        return this.packet(payload, spatial === sizes.length - 1 && i === count - 1);
      });
    });
  }

  /**
   * Returns one picture of AV1 in the mode L2T3_KEY: `sizes` are the bytes of its spatial layers, each in packets of at
   * most 1,000 bytes.
   */
  av1Picture({ key = false, sizes = [100, 200], temporal = 0, elapsedMs = 33 } = {}): Buffer[] {
    this.timestamp = (this.timestamp + Math.round(elapsedMs * 90)) >>> 0;
    return sizes.flatMap((size, spatial) => {
      this.pictureId = (this.pictureId + 1) & 0xffff;
      const template = (key ? 0 : [1, 2, 3][temporal]!) + 5 * spatial;
      const count = Math.max(1, Math.ceil(size / 1000));
      return Array.from({ length: count }, (_, i) => {
        const [isFirst, isLast] = [i === 0, i === count - 1];
        const bounds = (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0);
        const named = Buffer.from([bounds | template, this.pictureId >>> 8, this.pictureId]);
        const begins = key && spatial === 0 && isFirst;
        const descriptor = begins ? Buffer.concat([named, DESCRIPTOR.subarray(3)]) : named;
        const payload = Buffer.alloc(Math.ceil(size / count), this.mark);
        payload[0] = (isFirst ? 0 : 0x80) | (isLast ? 0 : 0x40) | (begins ? 0x18 : 0x10);
        const more: [number, Buffer][] = [[EXTENSIONS.dependencies, descriptor]];
        return this.packet(payload, isLast && spatial === sizes.length - 1, { more });
      });
    });
  }

  /**
   * Returns one H.264 frame: a parameter set packet and an IDR slice for a key frame, otherwise one slice, to which
   * others refer only in the temporal layer 0.
   */
  h264Frame({ key = false, elapsedMs = 33, size = 100, temporal = 0 } = {}): Buffer[] {
    this.timestamp = (this.timestamp + Math.round(elapsedMs * 90)) >>> 0;
    const slice = Buffer.alloc(size, this.mark);
    slice[0] = key ? 0x65 : temporal === 0 ? 0x41 : 0x01;
    // The slice starts its picture.
    slice[1] = 0x80 | this.mark;
    if (!key) return [this.packet(slice, true)];
    return [this.packet(Buffer.from([0x67, 0x42, 0xe0, 0x1f]), false), this.packet(slice, true)];
  }

  opusFrame({ level = 127, size = 60 } = {}): Buffer[] {
    this.timestamp = (this.timestamp + 960) >>> 0;
    const more: [number, Buffer][] = [[EXTENSIONS.audioLevel, Buffer.from([level])]];
    return [this.packet(Buffer.alloc(size, this.mark), false, { more })];
  }

  /** Returns padding on the media SSRC, as sent by probes without RTX. */
  padding(): Buffer {
    return this.packet(Buffer.alloc(0), false, { padding: 200 });
  }

  /** Returns the packet of this number, on the retransmission stream. */
  retransmit(sequence: number, rtx: SyntheticSource): Buffer {
    const original = this.sent.get(sequence & 0xffff);
    if (original === undefined) throw new Error(`packet ${sequence} was not sent`);
    const prefix = Buffer.alloc(2);
    prefix.writeUInt16BE(original.sequence & 0xffff);
    rtx.timestamp = original.timestamp;
    return rtx.packet(Buffer.concat([prefix, original.payload]), original.marker);
  }

  packet(payload: Buffer, marker: boolean, { more = [], padding = 0 }: PacketExtras = {}): Buffer {
    const { mid, rid, repairedRid, ssrc, payloadType } = this.options;
    const elements: [number, Buffer][] = [...more];
    if (mid !== undefined) elements.push([EXTENSIONS.mid, Buffer.from(mid)]);
    if (rid !== undefined) elements.push([EXTENSIONS.rid, Buffer.from(rid)]);
    if (repairedRid !== undefined) elements.push([EXTENSIONS.repairedRid, Buffer.from(repairedRid)]);
    if (this.transport !== undefined) {
      const number = Buffer.alloc(2);
      number.writeUInt16BE(this.transport.next++ & 0xffff);
      elements.push([EXTENSIONS.transportCc, number]);
    }
    const fields = {
      payloadType,
      sequence: this.sequence,
      timestamp: this.timestamp,
      ssrc,
      marker,
      payload,
      elements,
      padding,
    };
    this.sent.set(this.sequence & 0xffff, fields);
    this.sent.delete((this.sequence - 500) & 0xffff);
    this.sequence = (this.sequence + 1) & 0xffff;
    return rtpPacket(fields);
  }
}

export function inboundVideo(trackId: string, over: Partial<InboundTrack> = {}): InboundTrack {
  return {
    trackId,
    kind: 'video',
    mid: '1',
    codec: VP8,
    extensions: EXTENSIONS,
    rids: [],
    bitratesBps: { l: 150_000, m: 500_000, h: 1_500_000 },
    ...over,
  };
}

export function inboundSimulcast(trackId: string, over: Partial<InboundTrack> = {}): InboundTrack {
  return inboundVideo(trackId, { rids: ['l', 'm', 'h'], ...over });
}

export function inboundAudio(trackId: string, over: Partial<InboundTrack> = {}): InboundTrack {
  return {
    trackId,
    kind: 'audio',
    mid: '0',
    codec: OPUS,
    extensions: EXTENSIONS,
    rids: [],
    bitratesBps: {},
    ...over,
  };
}

/** The receiver's numbers differ from every publisher's. */
export const RECEIVER_EXTENSIONS: ExtensionIds = { mid: 9, transportCc: 5, audioLevel: 7, dependencies: 2 };

export function videoSlot(trackId: string, over: Partial<OutboundSlot> = {}): OutboundSlot {
  return {
    mid: '5',
    kind: 'video',
    ssrc: 0xaaaa0001,
    rtxSsrc: 0xaaaa0002,
    codec: { ...VP8, payloadType: 120, rtxPayloadType: 121 },
    extensions: RECEIVER_EXTENSIONS,
    trackId,
    ...over,
  };
}

export function audioSlot(trackId: string, over: Partial<OutboundSlot> = {}): OutboundSlot {
  return {
    mid: '4',
    kind: 'audio',
    ssrc: 0xbbbb0001,
    rtxSsrc: 0xbbbb0002,
    codec: { ...OPUS, payloadType: 63 },
    extensions: RECEIVER_EXTENSIONS,
    trackId,
    ...over,
  };
}
