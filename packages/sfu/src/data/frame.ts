/** Frames of data channels; docs/reference/data-channels.md. All bytes of headers are below 128, so text stays UTF-8. */

const MAX_RECEIVERS = 127;
/** Bytes of a message without its header. */
export const MAX_MESSAGE_BYTES = 64 * 1024;

export interface ClientFrame {
  /** Ids of the receivers; undefined for everybody. */
  receivers: ReadonlySet<string> | undefined;
  /** A view. */
  message: Buffer;
}

/** Reads a frame of a client; undefined when its header is broken. */
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

/** Returns what precedes the messages of a sender; an empty id stands for the backend. Ids are ASCII of up to 127 characters. */
export function senderHeader(peerId: string): Buffer {
  return Buffer.from(String.fromCharCode(peerId.length) + peerId, 'latin1');
}
