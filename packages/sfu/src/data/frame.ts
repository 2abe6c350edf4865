/**
 * Frames of data channels; docs/reference/data-channels.md. All header bytes are below 128, so that text stays UTF-8.
 */

const MAX_RECEIVERS = 127;
/** Maximum message size without its header, bytes. */
export const MAX_MESSAGE_BYTES = 64 * 1024;

export interface ClientFrame {
  /** Ids of the receivers; undefined means everybody. */
  receivers: ReadonlySet<string> | undefined;
  /** A view, not a copy. */
  message: Buffer;
}

/** Reads a client's frame; returns undefined if its header is broken. */
export function readClientFrame(frame: Buffer): ClientFrame | undefined {
  const count = frame[0];
  if (count === undefined || count > MAX_RECEIVERS) return undefined;
  if (count === 0) return { receivers: undefined, message: frame.subarray(1) };
  const receivers = new Set<string>();
  let at = 1;
  for (let index = 0; index < count; index++) {
    const length = frame[at];
    const end = at + 1 + (length ?? 0);
    if (length === undefined || length > 127 || end > frame.length) return undefined;
    receivers.add(frame.toString('latin1', at + 1, end));
    at = end;
  }
  return { receivers, message: frame.subarray(at) };
}

/**
 * Returns the header that precedes a sender's messages; an empty id stands for the backend. Ids are ASCII of up to 127
 * characters.
 */
export function senderHeader(peerId: string): Buffer {
  return Buffer.from(String.fromCharCode(peerId.length) + peerId, 'latin1');
}
