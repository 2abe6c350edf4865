/** ChannelData framing (RFC 8656 section 12.4): channel number, length, data. */

export const CHANNEL_DATA_HEADER = 4;
const FIRST_CHANNEL = 0x4000;
/** RFC 8656 allows up to 0x4FFF. The first byte of numbers up to 0x7FFF (RFC 5766) is ambiguous when demultiplexing. */
const LAST_CHANNEL = 0x4fff;

export function isChannelNumber(number: number): boolean {
  return number >= FIRST_CHANNEL && number <= LAST_CHANNEL;
}

/**
 * Returns the data of one ChannelData message as a view; undefined if it is truncated. Padding to four bytes is
 * optional over UDP, so up to three bytes may follow the data.
 */
export function channelPayload(frame: Buffer): Buffer | undefined {
  if (frame.length < CHANNEL_DATA_HEADER) return undefined;
  const length = ((frame[2] ?? 0) << 8) | (frame[3] ?? 0);
  const end = CHANNEL_DATA_HEADER + length;
  if (frame.length < end || frame.length > end + 3) return undefined;
  return frame.subarray(CHANNEL_DATA_HEADER, end);
}

/** Writes the header to the first four bytes. */
export function writeChannelHeader(datagram: Buffer, channel: number, length: number): void {
  datagram[0] = channel >>> 8;
  datagram[1] = channel & 0xff;
  datagram[2] = length >>> 8;
  datagram[3] = length & 0xff;
}
