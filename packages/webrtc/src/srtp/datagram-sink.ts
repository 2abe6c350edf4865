/**
 * Sends sealed packets; one per transport (nominated pair, relay channel). Must not throw and must not call back into the
 * sealer.
 */
export interface DatagramSink {
  /**
   * Bytes that the sink writes in front of each packet (a relay's channel header), at most `SLOT_HEADROOM`. Read for every
   * packet, so it may change with the path.
   */
  readonly headroom: number;

  /**
   * Sends `datagram`: `headroom` bytes to fill in, then the sealed packet. It is a view on the sealer's memory.
   *
   * Returns false when the bytes are still in use (the kernel's buffer was full and the write is queued): the sealer does not
   * touch the slot until `PacketSealer.release(slot)`.
   */
  send(datagram: Buffer, slot: number): boolean;
}
