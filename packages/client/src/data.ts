// Messages between clients over data channels (docs/reference/data-channels.md).
import { RoomClientError } from './errors.js';
import { type Bytes, concat } from './frame.js';

/** A message from another client. */
export interface DataMessage {
  /** Conversation to which the message belongs. */
  readonly label: string;
  /** The sending peer, as identified by the server. */
  readonly from: string;
  /** A string if sent as text, otherwise bytes. */
  readonly data: string | Bytes;
}

/** The recipients of a message, and whether it may be lost. */
export interface SendOptions {
  /** Ids of the receiving peers; by default all others in the room. */
  readonly to?: readonly string[];
  /** False for data that is worthless when late, such as pointers: messages may be lost or arrive out of order. */
  readonly reliable?: boolean;
}

/** The part of a call that conversations need. */
export interface DataHost {
  /**
   * Opens a channel on the current connection; undefined if there is none or the server has no data channels.
   * @throws RoomClientError DATA_REFUSED when the connection can have no more channels
   */
  readonly open: (label: string, options: RTCDataChannelInit) => RTCDataChannel | undefined;
  received(message: DataMessage): void;
}

interface Waiting {
  /** Undefined if the caller only waits for the channel to open. */
  readonly frame: string | Bytes | undefined;
  readonly resolve: () => void;
  readonly reject: (error: RoomClientError) => void;
}

/** Limits of the server. */
const MAX_BYTES = 64 * 1024;
const MAX_LABEL_BYTES = 64;
const MAX_RECEIVERS = 127;
const PEER_ID = /^[!-~]{1,127}$/;
/** The server's reserved label, for messages from the backend. */
const RESERVED = 'roomMessage';
/** Bytes that may wait in the browser before messages wait here. */
const HIGH_WATER_BYTES = 256 * 1024;
const LOW_WATER_BYTES = 64 * 1024;
/** Channels close before the loss of their connection is noticed: until then, keep their messages for the next one. */
const CLOSED_MS = 2_000;

/** One label. Its messages wait until its channel is open, including across reconnections. */
class Conversation {
  readonly #waiting: Waiting[] = [];
  #channel: RTCDataChannel | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;
  /** True after the channel has closed on a connection that remains. */
  isClosed = false;

  constructor(readonly options: RTCDataChannelInit) {}

  /** Sends a frame. Without a frame, resolves when one could be sent. */
  send(frame?: string | Bytes): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ frame, resolve, reject });
      this.#flush();
    });
  }

  use(channel: RTCDataChannel | undefined): void {
    clearTimeout(this.#closing);
    this.isClosed = false;
    this.#channel = channel;
    if (channel === undefined) return;
    channel.addEventListener('close', () => this.#channelClosed(channel));
    channel.bufferedAmountLowThreshold = LOW_WATER_BYTES;
    for (const event of ['open', 'bufferedamountlow']) channel.addEventListener(event, () => this.#flush());
    this.#flush();
  }

  close(error: RoomClientError): void {
    clearTimeout(this.#closing);
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  /** The server closes some channels without a report, and all of them with their association. */
  #channelClosed(channel: RTCDataChannel): void {
    if (channel !== this.#channel) return;
    this.#closing = setTimeout(() => {
      this.isClosed = true;
      this.close(refused(`the channel ${channel.label} was closed`));
    }, CLOSED_MS);
  }

  #flush(): void {
    const channel = this.#channel;
    while (channel?.readyState === 'open' && channel.bufferedAmount < HIGH_WATER_BYTES) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      // The two overloads of `send` do not accept a union.
      if (next.frame !== undefined) channel.send(next.frame as string);
      next.resolve();
    }
  }
}

/** The conversations of one client. */
export class Conversations {
  readonly #host: DataHost;
  /** Read by moving.ts, which continues them on another connection. */
  readonly byLabel = new Map<string, Conversation>();

  constructor(host: DataHost) {
    this.#host = host;
  }

  /** Joins a conversation. Resolves when its messages arrive. */
  async open(label: string, reliable = true): Promise<void> {
    return this.#conversation(label, reliable).send();
  }

  async send(label: string, data: string | Uint8Array, { to = [], reliable = true }: SendOptions = {}): Promise<void> {
    const frame = encodeData(data, to);
    return this.#conversation(label, reliable).send(frame);
  }

  /** Reads a channel opened by this client or the server. */
  listen(channel: RTCDataChannel): void {
    channel.binaryType = 'arraybuffer';
    channel.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      const message = decodeData(data);
      if (message !== undefined) this.#host.received({ label: channel.label, ...message });
    });
  }

  /** Moves all conversations to a new connection. */
  connected(open = this.#host.open): void {
    for (const [label, conversation] of this.byLabel) conversation.use(open(label, conversation.options));
  }

  /** Keeps waiting messages for the next connection. */
  disconnected(): void {
    for (const conversation of this.byLabel.values()) conversation.use(undefined);
  }

  /** Handles a conversation that the server closed because of a limit. The next message reopens it. */
  closed(label: string, reason: string): void {
    this.byLabel.get(label)?.close(refused(`the server closed the channel ${label}: ${reason}`));
    this.byLabel.delete(label);
  }

  clear(error: RoomClientError): void {
    for (const conversation of this.byLabel.values()) conversation.close(error);
    this.byLabel.clear();
  }

  #conversation(label: string, reliable: boolean): Conversation {
    const known = this.byLabel.get(label);
    if (known?.isClosed === true) known.use(this.#host.open(label, known.options));
    if (known !== undefined) return known;
    const bytes = new TextEncoder().encode(label).length;
    if (label === RESERVED || bytes === 0 || bytes > MAX_LABEL_BYTES) {
      throw refused(`"${label}" is not a label of 1 to ${MAX_LABEL_BYTES} bytes, or is ${RESERVED}`);
    }
    const conversation = new Conversation(reliable ? { ordered: true } : { ordered: false, maxRetransmits: 0 });
    conversation.use(this.#host.open(label, conversation.options));
    this.byLabel.set(label, conversation);
    return conversation;
  }
}

/**
 * Puts the recipients in front of a message; none means everyone.
 * @throws RoomClientError DATA_REFUSED when the server would not accept it
 */
export function encodeData(data: string | Uint8Array, to: readonly string[]): string | Bytes {
  const { length: bytes } = typeof data === 'string' ? new TextEncoder().encode(data) : data;
  if (bytes > MAX_BYTES) throw refused(`a message of ${bytes} bytes is too large: at most ${MAX_BYTES}`);
  if (to.length > MAX_RECEIVERS) throw refused(`${to.length} receivers exceed the limit of ${MAX_RECEIVERS}`);
  const wrong = to.find((id) => !PEER_ID.test(id));
  if (wrong !== undefined) throw refused(`"${wrong}" is not a peer id`);
  // Ids are ASCII, so a text header has the same bytes as a binary one.
  const header = String.fromCharCode(to.length) + to.map((id) => String.fromCharCode(id.length) + id).join('');
  if (typeof data === 'string') return header + data;
  return concat(new TextEncoder().encode(header), data);
}

/** Returns the sender and the message, or undefined if the frame is shorter than its header says. */
export function decodeData(frame: string | ArrayBuffer): Omit<DataMessage, 'label'> | undefined {
  if (typeof frame === 'string') {
    const end = 1 + frame.charCodeAt(0);
    return end <= frame.length ? { from: frame.slice(1, end), data: frame.slice(end) } : undefined;
  }
  const bytes = new Uint8Array(frame);
  const end = 1 + (bytes[0] ?? Number.NaN);
  return end <= bytes.length
    ? { from: String.fromCharCode(...bytes.subarray(1, end)), data: bytes.slice(end) }
    : undefined;
}

function refused(message: string): RoomClientError {
  return new RoomClientError('DATA_REFUSED', message);
}
