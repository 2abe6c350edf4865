/**
 * Sends sealed packets; one per transport (nominated pair, relay channel). Must not throw or call back into the sealer.
 */
export interface DatagramSink {
  /**
   * Bytes that the sink writes in front of each packet (a relay's channel header), at most `SLOT_HEADROOM`. Read for
   * every packet, because it may change with the path.
   */
  readonly headroom: number;

  /**
   * Sends `datagram`: `headroom` bytes for the sink to fill, then the sealed packet, as a view of the sealer's memory.
   *
   * Returns false when the bytes are still in use (the kernel's buffer was full and the write is queued): the sealer
   * does not reuse the slot until `PacketSealer.release(slot)`.
   */
  send(datagram: Buffer, slot: number): boolean;
}
