import { ExtensionProfiles, MediaStreamTrack, RtpHeader, RtpPacket } from 'werift';
import { isBase, type LoadCodec, type Place, writeAv1, writeH264, writeVp9 } from './layered-payload.js';

export type TrackKind = 'audio' | 'video';

function nowMicros(): number {
  return (performance.timeOrigin + performance.now()) * 1000;
}

const STAMP_BYTES = 8;
/** Returns the timestamp that the publisher wrote at the end of the payload, in microseconds since 1970. */
export function stampOf(payload: Buffer): number {
  return payload.readDoubleLE(payload.length - STAMP_BYTES);
}

/** Voice at -30 dBov (RFC 6464 section 3), under the id in a publisher's own offer: werift counts from 1. */
const AUDIO_LEVEL = { id: 4, payload: Buffer.of(0x80 | 30) };
/** The id of the dependency descriptor in such an offer of video. */
const DESCRIPTOR_ID = 4;
/** Longest data of a header extension in the one-byte form. */
const MAX_SHORT = 16;
/** Pictures from one key picture to the next. */
const KEY_INTERVAL = 30;

/** Sends a steady stream, packet by packet on a 1 ms tick. */
export class Publisher {
  readonly track: MediaStreamTrack;
  sent = 0;
  #sequence = 1;
  #pictureId = 1;
  #inFrame = 0;
  #frames = 0;
  #tl0PicIdx = 0;
  #timer: NodeJS.Timeout | undefined;
  #startedAt = 0;
  #rate = 0;
  #owed = 0;

  constructor(
    readonly kind: TrackKind,
    /** Size of the datagram in bytes, without header extensions and SRTP tag. */
    readonly bytes: number,
    /** Codec of video; VP9 and AV1 are sent with all layers. */
    readonly codec: LoadCodec = 'vp8',
  ) {
    this.track = new MediaStreamTrack({ kind });
  }

  /** Sends evenly, or with `frames` all packets of a picture at once, 30 times a second, as cameras do. */
  start(packetsPerSecond: number, { frames = false }: { frames?: boolean } = {}): void {
    this.stop();
    this.#rate = packetsPerSecond;
    const atOnce = frames ? this.#perFrame : 1;
    const most = Math.max(atOnce, this.#rate / 50);
    this.#startedAt = performance.now();
    this.#owed = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - this.#startedAt) * this.#rate) / 1000 / atOnce) * atOnce;
      // After this process has stalled, catch up by at most 20 ms or one picture at once.
      if (due - this.#owed > most) this.#owed = due - most;
      while (this.#owed < due) {
        this.#owed += 1;
        this.#send();
      }
    }, 1);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Packets of one picture, which takes 33 ms at any rate. */
  get #perFrame(): number {
    return this.kind === 'video' ? Math.max(1, Math.round(this.#rate / 30)) : 1;
  }

  #send(): void {
    const video = this.kind === 'video';
    const perFrame = this.#perFrame;
    const first = this.#inFrame === 0;
    const last = this.#inFrame === perFrame - 1;
    const payload = Buffer.alloc(this.bytes - 12);
    const descriptor = video ? this.#writeVideo(payload, first) : undefined;
    payload.writeDoubleLE(nowMicros(), payload.length - STAMP_BYTES);
    const layers = descriptor === undefined ? [] : [{ id: DESCRIPTOR_ID, payload: descriptor }];
    const extensions = video ? layers : [AUDIO_LEVEL];
    const isLong = descriptor !== undefined && descriptor.length > MAX_SHORT;
    this.track.writeRtp(
      new RtpPacket(
        new RtpHeader({
          version: 2,
          payloadType: video ? 96 : 111,
          sequenceNumber: this.#sequence & 0xffff,
          timestamp: ((video ? 3000 : 960) * this.#frames) >>> 0,
          ssrc: 1,
          marker: video ? last : false,
          extension: extensions.length > 0,
          extensionProfile: isLong ? ExtensionProfiles.TwoByte : ExtensionProfiles.OneByte,
          extensions,
        }),
        payload,
      ),
    );
    this.sent += 1;
    this.#sequence += 1;
    this.#inFrame += 1;
    if (this.#inFrame >= perFrame) {
      this.#inFrame = 0;
      this.#frames += 1;
      this.#pictureId += 1;
    }
  }

  /** Writes the start of a payload. Returns the packet's dependency descriptor, if its codec has any. */
  #writeVideo(payload: Buffer, first: boolean): Buffer | undefined {
    const sinceKey = this.#frames % KEY_INTERVAL;
    const place: Place = { picture: this.#pictureId, sinceKey, packet: this.#inFrame, packets: this.#perFrame };
    if (this.codec === 'av1') return writeAv1(payload, place);
    if (this.codec === 'h264') {
      writeH264(payload, place);
      return undefined;
    }
    if (this.codec === 'vp9') {
      if (first && isBase(place)) this.#tl0PicIdx += 1;
      writeVp9(payload, place, this.#tl0PicIdx);
      return undefined;
    }
    // VP8 descriptor with a 15-bit picture id (RFC 7741 section 4.2).
    payload[0] = first ? 0x90 : 0x80;
    payload[1] = 0x80;
    payload.writeUInt16BE(0x8000 | (this.#pictureId & 0x7fff), 2);
    payload[4] = sinceKey === 0 ? 0x10 : 0x11;
    return undefined;
  }
}
