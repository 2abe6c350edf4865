import { RtcpWriter, TransportCcRecorder } from '@bloom/rtp';
import { type MemoryPeer, seededRandom, type SeenPacket } from './memory-port.js';
import { RECEIVER_EXTENSIONS } from './synthetic-media.js';

const MEDIA_SSRC = 0xaaaa0001;
const RTX_SSRC = 0xaaaa0002;
/** As Chromium requests a packet: this often, ms, and up to so many times. */
const REQUEST_MS = 100;
const REQUESTS = 10;

/** A bottleneck in front of one client, which sends reports like a browser. */
export class NarrowClient {
  readonly #peer: MemoryPeer;
  readonly #recorder = new TransportCcRecorder({ senderSsrc: 5, intervalMs: 60 });
  readonly #queue: { arriveMs: number; packet: SeenPacket }[] = [];
  #freeAtMs = 0;
  /** Packets of the first video slot by their mark. */
  shown = new Map<number, number>();
  worstDelayMs = 0;
  /** Packets for which the queue had no room. */
  lost = 0;
  /** Part of the packets that is lost whatever the rate, 0..1. */
  randomLoss = 0;
  /** Lets it request lost packets of the first video slot. */
  requests = false;
  /** Lost packets by number: how often they have been requested, and when next. */
  readonly #missing = new Map<number, { times: number; dueMs: number }>();
  readonly #random = seededRandom(7);
  /** Returns what `shown` counts a packet by. */
  markOf = (packet: SeenPacket): number => packet.payload[10]!;

  constructor(
    peer: MemoryPeer,
    public capacityBps: number,
  ) {
    this.#peer = peer;
    peer.onPacket = (packet) => {
      if (this.#random() / 2 ** 32 < this.randomLoss) return;
      const start = Math.max(packet.atMs, this.#freeAtMs);
      if (start - packet.atMs > 500) {
        this.lost++;
        const isMedia = packet.ssrc === MEDIA_SSRC && !packet.isPadding;
        if (isMedia && this.requests) this.#missing.set(packet.sequence, { times: 0, dueMs: start });
        return;
      }
      this.#freeAtMs = start + (packet.bytes.length * 8000) / this.capacityBps;
      this.#queue.push({ arriveMs: this.#freeAtMs + 10, packet });
      this.worstDelayMs = Math.max(this.worstDelayMs, this.#freeAtMs - packet.atMs);
    };
  }

  tick(nowMs: number): void {
    while (this.#queue.length > 0 && this.#queue[0]!.arriveMs <= nowMs) {
      const { arriveMs, packet } = this.#queue.shift()!;
      const number = packet.extension(RECEIVER_EXTENSIONS.transportCc!);
      if (number !== undefined) this.#recorder.record(number.readUInt16BE(), arriveMs);
      if (packet.ssrc === RTX_SSRC && !packet.isPadding) this.#missing.delete(packet.payload.readUInt16BE());
      if (packet.ssrc === MEDIA_SSRC && !packet.isPadding) {
        const mark = this.markOf(packet);
        this.shown.set(mark, (this.shown.get(mark) ?? 0) + 1);
      }
    }
    this.#request(nowMs);
    if (!this.#recorder.isDue(nowMs)) return;
    const writer = new RtcpWriter();
    if (this.#recorder.write(writer, MEDIA_SSRC, nowMs)) this.#peer.sendControl(writer.bytes());
  }

  #request(nowMs: number): void {
    const due = [...this.#missing].filter(([, { dueMs }]) => dueMs <= nowMs);
    for (const [sequence, request] of due) {
      request.times += 1;
      request.dueMs = nowMs + REQUEST_MS;
      if (request.times === REQUESTS) this.#missing.delete(sequence);
    }
    if (due.length === 0) return;
    const writer = new RtcpWriter();
    writer.nack(
      5,
      MEDIA_SSRC,
      due.map(([sequence]) => sequence),
    );
    this.#peer.sendControl(writer.bytes());
  }
}
