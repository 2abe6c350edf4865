import { RtcpWriter, TransportCcRecorder } from '@bloom/rtp';
import type { MemoryPeer, SeenPacket } from './memory-port.js';
import { RECEIVER_EXTENSIONS } from './synthetic-media.js';

const MEDIA_SSRC = 0xaaaa0001;
const RTX_SSRC = 0xaaaa0002;
/** As Chromium requests a packet: this often, ms, and up to so many times. */
const REQUEST_MS = 100;
const REQUESTS = 10;
/** Chromium requests a key picture after this time without any picture, before the first one and after it, ms. */
const FIRST_WAIT_MS = 200;
const WAIT_MS = 3_000;
/** Pictures from one of each temporal layer back to the one that it refers to, for the pattern 0, 2, 1, 2. */
const REFERS_BACK = [4, 2, 1];

/** What a viewer has to know of a packet. */
export interface PicturePart {
  readonly isKey: boolean;
  readonly spatial: number;
  readonly temporal: number;
  /** True for the first packet of the smallest size. */
  readonly isFirst: boolean;
}

interface Part extends PicturePart {
  readonly timestamp: number;
  readonly isLast: boolean;
}

interface PictureViewerOptions {
  readonly capacityBps: number;
  /** How long a packet may wait in the link's queue, ms. */
  readonly queueMs: number;
  readonly nowMs: number;
  /** Time from one picture to the next, ms. */
  readonly pictureMs: number;
  read(packet: SeenPacket, payload: Buffer): PicturePart;
}

/** A viewer behind a link that shows whole pictures only, and requests what it lacks as Chromium does. */
export class PictureViewer {
  readonly #peer: MemoryPeer;
  readonly #options: PictureViewerOptions;
  readonly #recorder = new TransportCcRecorder({ senderSsrc: 5, intervalMs: 60 });
  readonly #queue: { arriveMs: number; packet: SeenPacket }[] = [];
  #freeAtMs = 0;
  /** By unwrapped sequence number; undefined for empty packets. */
  readonly #parts = new Map<number, Part | undefined>();
  readonly #missing = new Map<number, { times: number; dueMs: number }>();
  readonly #shown = new Set<number>();
  #newest = -1;
  #newestShown = -1;
  #keyRequestedAtMs = 0;
  #shownAtMs: number;
  /** When the first picture was shown, and the first one of each size, ms after the start. */
  firstMs = Infinity;
  readonly sizeMs = new Map<number, number>();
  /** Longest time between two pictures, ms. */
  longestPauseMs = 0;
  /** Packets for which the queue had no room. */
  lost = 0;

  constructor(peer: MemoryPeer, options: PictureViewerOptions) {
    this.#peer = peer;
    this.#options = options;
    this.#shownAtMs = options.nowMs;
    peer.onPacket = (packet) => {
      const startMs = Math.max(packet.atMs, this.#freeAtMs);
      if (startMs - packet.atMs > options.queueMs) {
        this.lost += 1;
        return;
      }
      this.#freeAtMs = startMs + ((packet.bytes.length + 28) * 8000) / options.capacityBps;
      this.#queue.push({ arriveMs: this.#freeAtMs + 20, packet });
    };
  }

  tick(nowMs: number): void {
    while (this.#queue.length > 0 && this.#queue[0]!.arriveMs <= nowMs) {
      const { arriveMs, packet } = this.#queue.shift()!;
      this.#arrived(packet, arriveMs);
    }
    const isStarted = this.firstMs < Infinity;
    if (isStarted) this.longestPauseMs = Math.max(this.longestPauseMs, nowMs - this.#shownAtMs);
    const sinceMs = nowMs - Math.max(this.#shownAtMs, this.#keyRequestedAtMs);
    if (this.#newest >= 0 && sinceMs > (isStarted ? WAIT_MS : FIRST_WAIT_MS)) this.#requestKey(nowMs);
    this.#requestMissing(nowMs);
    if (!this.#recorder.isDue(nowMs)) return;
    const writer = new RtcpWriter();
    if (this.#recorder.write(writer, MEDIA_SSRC, nowMs)) this.#peer.sendControl(writer.bytes());
  }

  #requestKey(nowMs: number): void {
    this.#keyRequestedAtMs = nowMs;
    this.#peer.sendControl(new RtcpWriter().pli(5, MEDIA_SSRC).bytes());
  }

  #requestMissing(nowMs: number): void {
    const due = [...this.#missing].filter(([, { dueMs }]) => dueMs <= nowMs);
    for (const [number, request] of due) {
      request.times += 1;
      request.dueMs = nowMs + REQUEST_MS;
      if (request.times === REQUESTS) this.#missing.delete(number);
    }
    if (due.length === 0) return;
    const writer = new RtcpWriter();
    writer.nack(
      5,
      MEDIA_SSRC,
      due.map(([number]) => number & 0xffff),
    );
    this.#peer.sendControl(writer.bytes());
  }

  #arrived(packet: SeenPacket, atMs: number): void {
    const transport = packet.extension(RECEIVER_EXTENSIONS.transportCc!);
    if (transport !== undefined) this.#recorder.record(transport.readUInt16BE(), atMs);
    if (packet.isPadding) return;
    const isResent = packet.ssrc === RTX_SSRC;
    const payload = isResent ? packet.payload.subarray(2) : packet.payload;
    const wire = isResent ? packet.payload.readUInt16BE() : packet.sequence;
    const number = this.#newest < 0 ? wire : this.#newest + (((wire - this.#newest) << 16) >> 16);
    if (this.#newest < 0) this.#newest = number;
    while (this.#newest < number) this.#missing.set((this.#newest += 1), { times: 0, dueMs: atMs });
    this.#missing.delete(number);
    const isEmpty = payload.length === 0;
    const { timestamp, marker } = packet;
    this.#parts.set(
      number,
      isEmpty ? undefined : { ...this.#options.read(packet, payload), timestamp, isLast: marker },
    );
    this.#show(atMs);
  }

  #show(atMs: number): void {
    for (const [first, part] of [...this.#parts].toSorted(([a], [b]) => a - b)) {
      if (part === undefined || !part.isFirst || part.timestamp <= this.#newestShown) continue;
      const size = this.#sizeOf(first, part);
      const referred = part.timestamp - REFERS_BACK[part.temporal]! * this.#options.pictureMs * 90;
      const isReady = part.isKey || this.#shown.has(referred);
      if (size === undefined || !isReady) continue;
      this.#shown.add(part.timestamp);
      this.#newestShown = part.timestamp;
      if (this.firstMs === Infinity) this.firstMs = atMs - this.#options.nowMs;
      else this.longestPauseMs = Math.max(this.longestPauseMs, atMs - this.#shownAtMs);
      this.#shownAtMs = atMs;
      if (!this.sizeMs.has(size)) this.sizeMs.set(size, atMs - this.#options.nowMs);
      for (const number of this.#parts.keys()) if (number < first) this.#parts.delete(number);
      for (const number of this.#missing.keys()) if (part.isKey && number < first) this.#missing.delete(number);
    }
  }

  /** Returns the largest size of a picture that has arrived whole. */
  #sizeOf(first: number, { timestamp }: Part): number | undefined {
    let size = 0;
    for (let number = first; this.#parts.has(number); number += 1) {
      const part = this.#parts.get(number);
      if (part === undefined) continue;
      if (part.timestamp !== timestamp) return undefined;
      size = part.spatial;
      if (part.isLast) return size;
    }
    return undefined;
  }
}
