/**
 * Where sealed packets leave: one per transport (nominated pair, relay channel). Must not throw and must not call back
 * into the sealer.
 */
export interface DatagramSink {
  /**
   * Bytes the sink wants to write in front of each packet (a relay's channel header), at most `SLOT_HEADROOM`. Read for
   * every packet, so it may change when the path changes.
   */
  readonly headroom: number;

  /**
   * Sends `datagram`: `headroom` bytes to fill in, then the sealed packet. It is a view on the sealer's memory.
   *
   * True: the bytes are not needed any more. False: they are still in use (the kernel's buffer was full and the write is
   * queued); the sealer keeps its hands off the slot until `PacketSealer.release(slot)`.
   */
  send(datagram: Buffer, slot: number): boolean;
}
