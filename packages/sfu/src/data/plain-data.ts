import { type ChannelName, isReliable } from '@bloom/webrtc';
import type { ChannelStats, DataCloseReason } from '../media-engine.js';
import { DataAllowance } from './data-allowance.js';
import type { DataCounters, DataPort, DataRouter } from './data-router.js';

/** Maximum size of one message, bytes. */
const MAX_MESSAGE_BYTES = 64_000;
/** Messages and bytes of one sender, as a burst and per second. */
const RATE = {
  messages: { burst: 1_000, perSecond: 1_000 },
  bytes: { burst: 4 * 1024 * 1024, perSecond: 4 * 1024 * 1024 },
};
const MAX_LABEL_BYTES = 64;
/** Messages that wait for a channel which the client has not opened yet; the oldest are dropped. */
const MAX_EARLY = { messages: 256, bytes: 256 * 1024 };

interface PlainDataOptions {
  /** Labels of the channels that the client may open. */
  labels: readonly string[];
  /** Channels that the server opens. */
  opens?: readonly ChannelName[];
  maySend: boolean;
  room: Pick<DataRouter, 'admitsPlain'>;
}

export interface PlainDataEvents {
  /** Reports a message of the client. */
  message(label: string, data: Uint8Array): void;
  channelClosed(label: string, reason: DataCloseReason): void;
}

/**
 * The data channels of a client whose messages the control plane reads and delivers: they have no header, and reach
 * nobody by themselves. Uses no sockets and no clock.
 */
export class PlainData {
  readonly #labels: ReadonlySet<string>;
  readonly #room: PlainDataOptions['room'];
  readonly #events: PlainDataEvents;
  readonly #counters: DataCounters;
  readonly #allowance = new DataAllowance(RATE);
  readonly #channels = new Map<number, ChannelName>();
  readonly #opens: readonly ChannelName[];
  /** Labels that have had no channel yet. */
  readonly #awaited: Set<string>;
  #early: { label: string; frame: Buffer }[] = [];
  #earlyBytes = 0;
  #port: DataPort | undefined;
  #maySend: boolean;

  constructor(
    { labels, opens = [], maySend, room }: PlainDataOptions,
    events: PlainDataEvents,
    counters: DataCounters,
  ) {
    this.#room = room;
    this.#labels = new Set(labels);
    this.#opens = opens;
    this.#awaited = new Set([...labels, ...opens.map(({ label }) => label)]);
    this.#maySend = maySend;
    this.#events = events;
    this.#counters = counters;
  }

  /** Takes effect with the next message. */
  permit(maySend: boolean): void {
    this.#maySend = maySend;
  }

  join(_peerId: string, port: DataPort): void {
    this.#port = port;
    for (const channel of this.#opens) {
      const stream = port.open(channel);
      if (stream !== undefined) this.#add(stream, channel);
    }
  }

  leave(): void {
    this.#port = undefined;
    this.#channels.clear();
    this.#awaited.clear();
    this.#early = [];
    this.#earlyBytes = 0;
  }

  opened(_peerId: string, stream: number, channel: ChannelName): void {
    const { label } = channel;
    const isTaken = [...this.#channels.values()].some((other) => other.label === label);
    if (this.#labels.has(label) && !isTaken) return this.#add(stream, channel);
    this.#port?.close(stream);
    this.#events.channelClosed(
      Buffer.byteLength(label) > MAX_LABEL_BYTES ? '' : label,
      isTaken ? 'too_many' : 'bad_label',
    );
  }

  closed(_peerId: string, stream: number): void {
    this.#channels.delete(stream);
  }

  message(_peerId: string, stream: number, _isText: boolean, frame: Buffer, nowMs: number): void {
    const channel = this.#channels.get(stream);
    if (channel === undefined) return;
    const { dropped, dataMessages } = this.#counters;
    if (!this.#allowance.take(nowMs, frame.length)) return void dropped.data_rate++;
    if (!this.#maySend) return void dropped.data_denied++;
    if (frame.length === 0 || frame.length > MAX_MESSAGE_BYTES) return void dropped.data_malformed++;
    // Last, so that no message that is dropped anyway takes from the others' share.
    if (!this.#room.admitsPlain(nowMs, frame.length)) return void dropped.data_rate++;
    dataMessages.received++;
    // Copy: a view would transfer the whole underlying memory to the other thread.
    this.#events.message(channel.label, new Uint8Array(frame));
  }

  /** Sends a message on the client's channel of this label. It waits for the first one, and is dropped after it. */
  send(label: string, frame: Buffer): void {
    if (this.#awaited.has(label)) return this.#hold(label, frame);
    for (const [stream, { label: own, kind }] of this.#channels) {
      if (own !== label) continue;
      const isQueued = this.#port?.send({ stream, isText: false, reliable: isReliable(kind), frame, kind }) ?? true;
      if (isQueued) this.#counters.dataMessages.sent++;
      else this.#overflow(stream, label);
      return;
    }
  }

  channels(): ChannelStats[] {
    return [...this.#channels.values()].map((channel) => {
      const { label, kind } = channel;
      return { label, openedBy: this.#opens.includes(channel) ? 'server' : 'client', ...kind };
    });
  }

  #add(stream: number, channel: ChannelName): void {
    const { label } = channel;
    this.#channels.set(stream, channel);
    if (!this.#awaited.delete(label)) return;
    const due = this.#early.filter((message) => message.label === label);
    this.#early = this.#early.filter((message) => message.label !== label);
    for (const { frame } of due) {
      this.#earlyBytes -= frame.length;
      this.send(label, frame);
    }
  }

  /** A client is in the room before its channels are open, and must not miss what is sent meanwhile. */
  #hold(label: string, frame: Buffer): void {
    this.#early.push({ label, frame });
    this.#earlyBytes += frame.length;
    while (this.#early.length > MAX_EARLY.messages || this.#earlyBytes > MAX_EARLY.bytes) {
      this.#earlyBytes -= this.#early.shift()?.frame.length ?? 0;
      this.#counters.dropped.data_backlog++;
    }
  }

  #overflow(stream: number, label: string): void {
    this.#port?.close(stream);
    this.#channels.delete(stream);
    this.#events.channelClosed(label, 'backlog');
  }
}
