import type { DatagramSink } from './datagram-sink.js';
import type { SrtpSendSession } from './send-session.js';

/** Free bytes in front of every output slot, for a sink's framing and, during sealing, for the HMAC's padded key. */
export const SLOT_HEADROOM = 64;

/** One outbound SSRC of one session. Opaque to callers. */
export interface SealStream {
  readonly ssrc: number;
}

export interface SealerCounters {
  /** Packets passed to sinks. */
  sealed: number;
  /** Packets not sent because every slot was still in use by the kernel. */
  overruns: number;
  /** Packets not sent because they did not fit into a slot. */
  oversized: number;
  /** Sinks that threw. */
  sinkFaults: number;
}

/**
 * Seals one plaintext packet for many receivers (SRTP_AES128_CM_HMAC_SHA1_80, RFC 3711). One per worker. A round:
 *
 *     sealer.begin(view.buffer, view.payloadStart, view.payloadEnd);
 *     for (const to of receivers) {
 *       const at = sealer.reserve();
 *       if (at < 0) break;
 *       const header = to.header.write(sealer.arena, at, ...);
 *       const prefix = payload.write(sealer.arena, at + header, ...);
 *       sealer.commit(to.stream, header, prefix, payload.headerLength, to.mapper.sequence);
 *     }
 *     sealer.end();
 *
 * Sinks receive packets during `commit` or `end`, in the order of the commits.
 */
export interface PacketSealer {
  readonly kind: 'wasm' | 'javascript';
  /** The memory that holds the output slots. */
  readonly arena: Buffer;
  /** Largest sealed packet, tag included. */
  readonly maxPacketBytes: number;
  readonly counters: Readonly<SealerCounters>;

  openStream(session: SrtpSendSession, ssrc: number, sink: DatagramSink): SealStream;
  /** Idempotent. Not within a round. */
  closeStream(stream: SealStream): void;

  /** Starts a round with the payload common to its receivers; `source` must stay as it is until `end`. */
  begin(source: Buffer, start: number, end: number): void;
  /** Returns the offset in `arena` of the next packet's header, or -1 when no slot is free. Has no effect without `commit`. */
  reserve(): number;
  /**
   * Seals and sends the packet begun by the last `reserve`: `headerLength` bytes of RTP header (a multiple of 4), then
   * `prefixLength` bytes of payload (a rewritten descriptor, an RTX sequence number) that replace the first `skip` bytes
   * of the common payload.
   *
   * `index` is the unwrapped sequence number (roll-over counter * 65536 + sequence, RFC 3711 section 3.3.1). An index must
   * never be used for two different payloads under one SSRC. Returns false when the packet was dropped, see `counters`.
   */
  commit(stream: SealStream, headerLength: number, prefixLength: number, skip: number, index: number): boolean;
  end(): void;
  /** Frees a slot that a sink had kept. */
  release(slot: number): void;
}

export interface PacketSealerOptions {
  /** `javascript` forces the fallback; by default WebAssembly is used where it works. */
  kind?: 'wasm' | 'javascript';
  /** Bound on the datagrams that wait for the kernel. */
  slots?: number;
  /** Largest sealed packet. */
  maxPacketBytes?: number;
  /** Memory for the keystreams of streams, bytes (WebAssembly only); streams beyond it are served more slowly. */
  keystreamBytes?: number;
}
