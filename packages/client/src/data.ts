// Messages between clients over data channels (docs/reference/data-channels.md).
import { RoomClientError } from './errors.js';

/** A message of another client. */
export interface DataMessage {
  /** Conversation that it belongs to. */
  readonly label: string;
  /** The peer that sent it, as the server knows it. */
  readonly from: string;
  /** Text as it was sent as text, bytes as bytes. */
  readonly data: string | Uint8Array<ArrayBuffer>;
}

/** To whom a message goes, and whether it may be lost. */
export interface SendOptions {
  /** Ids of the peers that receive it; all others in the room by default. */
  readonly to?: readonly string[];
  /** False for what is worthless when it is late, such as pointers and positions: messages may be lost and overtake each other. */
  readonly reliable?: boolean;
}

/** The part of a call that conversations need. */
export interface DataHost {
  /**
   * Opens a channel on the present connection; undefined while there is none, or where the server has no data channels.
   * @throws RoomClientError DATA_REFUSED where the connection can have no more channels
   */
  open(label: string, options: RTCDataChannelInit): RTCDataChannel | undefined;
  received(message: DataMessage): void;
}

interface Waiting {
  /** Undefined where only the open channel is waited for. */
  readonly frame?: string | Uint8Array<ArrayBuffer>;
  readonly resolve: () => void;
  readonly reject: (error: RoomClientError) => void;
}

/** Limits of the server. */
const MAX_BYTES = 64 * 1024;
const MAX_LABEL_BYTES = 64;
const MAX_RECEIVERS = 127;
const PEER_ID = /^[!-~]{1,127}$/;
/** The server's own label, for messages of the backend. */
const RESERVED = 'roomMessage';
/** Bytes that may wait in the browser before messages wait here. */
const HIGH_WATER_BYTES = 256 * 1024;
const LOW_WATER_BYTES = 64 * 1024;
/** Channels that close with their connection do so before that is seen to be lost, where their messages wait for the next one. */
const CLOSED_MS = 2_000;

/** One label: its messages wait until its channel is open, also across reconnections. */
class Conversation {
  readonly #waiting: Waiting[] = [];
  #channel: RTCDataChannel | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(readonly options: RTCDataChannelInit) {}

  /** True once the channel has closed on a connection that goes on. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends a frame, or resolves when one could be sent. */
  send(frame?: string | Uint8Array<ArrayBuffer>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...(frame === undefined ? {} : { frame }), resolve, reject });
      this.#flush();
    });
  }

  use(channel: RTCDataChannel | undefined): void {
    clearTimeout(this.#closing);
    this.#isClosed = false;
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
      this.#isClosed = true;
      this.close(refused(`the channel ${channel.label} was closed`));
    }, CLOSED_MS);
  }

  #flush(): void {
    const channel = this.#channel;
    while (channel?.readyState === 'open' && channel.bufferedAmount < HIGH_WATER_BYTES) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      // The two overloads of `send` know no union.
      if (typeof next.frame === 'string') channel.send(next.frame);
      else if (next.frame !== undefined) channel.send(next.frame);
      next.resolve();
    }
  }
}

/** The conversations of one client. */
export class Conversations {
  readonly #host: DataHost;
  readonly #byLabel = new Map<string, Conversation>();

  constructor(host: DataHost) {
    this.#host = host;
  }

  /** Takes part in a conversation. Resolves when its messages arrive. */
  async open(label: string, reliable = true): Promise<void> {
    return this.#conversation(label, reliable).send();
  }

  async send(label: string, data: string | Uint8Array, { to = [], reliable = true }: SendOptions = {}): Promise<void> {
    const frame = encodeData(data, to);
    return this.#conversation(label, reliable).send(frame);
  }

  /** Reads a channel, whether this client or the server opened it. */
  listen(channel: RTCDataChannel): void {
    channel.binaryType = 'arraybuffer';
    channel.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      const message = decodeData(data);
      if (message !== undefined) this.#host.received({ label: channel.label, ...message });
    });
  }

  /** A new connection is there: all conversations go on with it. */
  connected(): void {
    for (const [label, conversation] of this.#byLabel) conversation.use(this.#host.open(label, conversation.options));
  }

  /** The connection is lost: what waits goes on with the next one. */
  disconnected(): void {
    for (const conversation of this.#byLabel.values()) conversation.use(undefined);
  }

  /** The server has closed a conversation because of a limit. The next message opens it again. */
  closed(label: string, reason: string): void {
    this.#byLabel.get(label)?.close(refused(`the server closed the channel ${label}: ${reason}`));
    this.#byLabel.delete(label);
  }

  clear(error: RoomClientError): void {
    for (const conversation of this.#byLabel.values()) conversation.close(error);
    this.#byLabel.clear();
  }

  #conversation(label: string, reliable: boolean): Conversation {
    const known = this.#byLabel.get(label);
    if (known?.isClosed === true) known.use(this.#host.open(label, known.options));
    if (known !== undefined) return known;
    const bytes = new TextEncoder().encode(label).length;
    if (label === RESERVED || bytes === 0 || bytes > MAX_LABEL_BYTES) {
      throw refused(`"${label}" is no label: 1 to ${MAX_LABEL_BYTES} bytes, and not ${RESERVED}`);
    }
    const conversation = new Conversation(reliable ? { ordered: true } : { ordered: false, maxRetransmits: 0 });
    conversation.use(this.#host.open(label, conversation.options));
    this.#byLabel.set(label, conversation);
    return conversation;
  }
}

/**
 * Puts the receivers in front of a message; none means everybody.
 * @throws RoomClientError DATA_REFUSED when the server would not accept it
 */
export function encodeData(data: string | Uint8Array, to: readonly string[]): string | Uint8Array<ArrayBuffer> {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data).length : data.length;
  if (bytes > MAX_BYTES) throw refused(`a message of ${bytes} bytes is too large: at most ${MAX_BYTES}`);
  if (to.length > MAX_RECEIVERS) throw refused(`${to.length} receivers are too many: at most ${MAX_RECEIVERS}`);
  const wrong = to.find((id) => !PEER_ID.test(id));
  if (wrong !== undefined) throw refused(`"${wrong}" is not the id of a peer`);
  // Ids are ASCII, so that a header of text has the bytes of a binary one.
  const header = String.fromCharCode(to.length) + to.map((id) => String.fromCharCode(id.length) + id).join('');
  if (typeof data === 'string') return header + data;
  const head = new TextEncoder().encode(header);
  const frame = new Uint8Array(head.length + data.length);
  frame.set(head);
  frame.set(data, head.length);
  return frame;
}

/** Returns the sender and the message; undefined when the frame is shorter than its header says. */
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
