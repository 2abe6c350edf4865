import { RtcpWriter, TransportCcRecorder } from '@bloom/rtp';
import { type MemoryPeer, seededRandom, type SeenPacket } from './memory-port.js';
import { RECEIVER_EXTENSIONS } from './synthetic-media.js';

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
      if (packet.ssrc === 0xaaaa0001 && !packet.isPadding) {
        const mark = this.markOf(packet);
        this.shown.set(mark, (this.shown.get(mark) ?? 0) + 1);
      }
    }
    if (!this.#recorder.isDue(nowMs)) return;
    const writer = new RtcpWriter();
    if (this.#recorder.write(writer, 0xaaaa0001, nowMs)) this.#peer.sendControl(writer.bytes());
  }
}
