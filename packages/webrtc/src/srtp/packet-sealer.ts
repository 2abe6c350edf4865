import type { DatagramSink } from './datagram-sink.js';
import type { SrtpSendSession } from './send-session.js';

/** Free bytes in front of every output slot: for the sink's framing and, while sealing, for the padded HMAC key. */
export const SLOT_HEADROOM = 64;

/** One outbound SSRC of one session; opaque to callers. */
export interface SealStream {
  readonly ssrc: number;
}

export interface SealerCounters {
  /** Packets passed to sinks. */
  sealed: number;
  /** Packets dropped because the kernel still used every slot. */
  overruns: number;
  /** Packets dropped because they did not fit into a slot. */
  oversized: number;
  /** Number of times a sink threw. */
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
  /** Largest sealed packet in bytes, including the tag. */
  readonly maxPacketBytes: number;
  readonly counters: Readonly<SealerCounters>;

  openStream(session: SrtpSendSession, ssrc: number, sink: DatagramSink): SealStream;
  /** Closes the stream. Must not be called within a round. Idempotent. */
  closeStream(stream: SealStream): void;

  /** Starts a round with the payload shared by its receivers. `source` must not change until `end`. */
  begin(source: Buffer, start: number, end: number): void;
  /** Returns the next packet's header offset in `arena`; -1 if no slot is free. Has no effect without `commit`. */
  reserve(): number;
  /**
   * Seals and sends the packet begun by the last `reserve`: `headerLength` bytes of RTP header (a multiple of 4), then
   * `prefixLength` bytes of payload (a rewritten descriptor, an RTX sequence number) that replace the first `skip`
   * bytes of the shared payload. Returns false if the packet was dropped (see `counters`).
   *
   * `index` is the unwrapped sequence number (roll-over counter * 65536 + sequence, RFC 3711 section 3.3.1). It must
   * never be used for two different payloads under one SSRC.
   */
  commit(stream: SealStream, headerLength: number, prefixLength: number, skip: number, index: number): boolean;
  end(): void;
  /** Frees a slot that a sink kept. */
  release(slot: number): void;
}

export interface PacketSealerOptions {
  /** `javascript` forces the fallback. Default: WebAssembly where available. */
  kind?: 'wasm' | 'javascript';
  /** Bound on the datagrams queued for the kernel. */
  slots?: number;
  /** Largest sealed packet in bytes. */
  maxPacketBytes?: number;
  /** Memory for keystreams in bytes (WebAssembly only); streams beyond it are sealed more slowly. */
  keystreamBytes?: number;
}
