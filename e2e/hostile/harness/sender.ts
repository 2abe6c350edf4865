import { setTimeout as pause } from 'node:timers/promises';
import type { TestClient } from '@bloom/webrtc/testing';
import { RtpHeader } from 'werift';

const PACKET_MS = 20;
const TIMESTAMP_STEP = 1_800;

/** Sends VP8 packets of a published track over an established association. */
export class Sender {
  #sequence = 0;

  constructor(
    readonly wire: TestClient,
    readonly ssrc: number,
  ) {}

  send(over: Partial<RtpHeader> = {}, payload: Buffer = Buffer.alloc(200)): Buffer {
    this.#sequence = (this.#sequence + 1) & 0xffff;
    // VP8 descriptor with the start of a partition; every 30th frame is a key frame.
    if (payload.length > 1) {
      payload[0] = 0x10;
      payload[1] = this.#sequence % 30 === 1 ? 0x10 : 0x11;
    }
    const header = new RtpHeader({
      version: 2,
      payloadType: 96,
      sequenceNumber: this.#sequence,
      timestamp: (this.#sequence * TIMESTAMP_STEP) >>> 0,
      ssrc: this.ssrc,
      marker: true,
      ...over,
    });
    const sealed = this.wire.srtp?.encrypt(payload, header) ?? Buffer.alloc(0);
    this.wire.sendPacket(sealed);
    return sealed;
  }

  async run(durationMs: number): Promise<void> {
    const until = performance.now() + durationMs;
    while (performance.now() < until) {
      this.send();
      await pause(PACKET_MS);
    }
  }
}

/** Counts RTP and RTCP packets that arrive from now on. */
export function countMedia({ wire }: TestClient): { packets: number; bytes: number } {
  const count = { packets: 0, bytes: 0 };
  const take = wire.onDatagram;
  wire.onDatagram = (datagram) => {
    if ((datagram[0] ?? 0) >= 128) {
      count.packets += 1;
      count.bytes += datagram.length;
    }
    take(datagram);
  };
  return count;
}
