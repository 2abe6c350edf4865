import { Allowance } from '@bloom/time';
import { type ChannelKind, type ChannelName, isReliable } from '@bloom/webrtc';
import type { CrossingData } from '../crossing/worker-link.js';
import type { ChannelStats, DataCloseReason } from '../media-engine.js';
import { asBuffer } from '../media-frames.js';
import { DataAllowance } from './data-allowance.js';
import { type ClientFrame, MAX_MESSAGE_BYTES, readClientFrame, senderHeader } from './frame.js';

/** Label of the backend's messages. */
const BACKEND_LABEL = 'roomMessage';
const MAX_OWN_CHANNELS = 16;
const MAX_LABELS = 64;
/** Messages of one sender, as a burst and per second. */
const RATE = { burst: 1_000, perSecond: 1_000 };
/** Channels that one client may open. Each one is opened towards everybody else in the room. */
const OPENINGS = { burst: 64, perSecond: 4 };
/** Limit on what the backend receives from one sender and from a room, as a burst and per second. */
const HEARD = {
  sender: { messages: { burst: 200, perSecond: 100 }, bytes: { burst: 512 * 1024, perSecond: 128 * 1024 } },
  room: { messages: { burst: 2_000, perSecond: 1_000 }, bytes: { burst: 4 * 1024 * 1024, perSecond: 1024 * 1024 } },
};
/** Limit on what a room's plain channels hand to the control plane, which delivers each message to its receivers. */
const PLAIN = {
  messages: { burst: 4_000, perSecond: 2_000 },
  bytes: { burst: 16 * 1024 * 1024, perSecond: 8 * 1024 * 1024 },
};

export interface OutgoingMessage {
  stream: number;
  isText: boolean;
  reliable: boolean;
  /** Shared by all receivers. */
  frame: Buffer;
  kind: ChannelKind;
}

/** The data channels of one client, as the router uses them. */
export interface DataPort {
  /** Opens a channel and returns its stream; undefined if none is left. */
  open(channel: ChannelName): number | undefined;
  close(stream: number): void;
  /** Returns false if a reliable message does not fit into the client's queue. */
  send(message: OutgoingMessage): boolean;
}

/** The router of the same room on another worker. */
export interface RouterLink {
  /** A client here has opened the first channel of this label. */
  opened(channel: ChannelName): void;
  /** The last client's channel of this label has closed here. */
  closed(label: string): void;
  /** Returns false if the other worker is too far behind. */
  send(message: CrossingData): boolean;
}

export interface DataRouterEvents {
  channelClosed(peerId: string, label: string, reason: DataCloseReason): void;
  /** Reports whether the backend's messages reach this client on a data channel. */
  messageChannel(peerId: string, open: boolean): void;
  /** Reports a client's message on a label that the backend listens to. An empty `to` means everybody. */
  heard(peerId: string, message: { label: string; to: string[]; data: string | Uint8Array }): void;
}

export interface DataCounters {
  dataMessages: { received: number; sent: number };
  dropped: Record<'data_rate' | 'data_denied' | 'data_malformed' | 'data_unheard' | 'data_backlog', number>;
}

interface Label {
  channel: ChannelName;
  /** Number of its channels that clients here have opened. */
  openers: number;
  /** Workers on which clients have opened some. */
  elsewhere: Set<number>;
}

interface Member {
  peerId: string;
  port: DataPort;
  header: Buffer;
  maySend: boolean;
  mayReceive: boolean;
  /** Channels by label: the one that the client opened, and ours. */
  labels: Map<string, { own?: number; ours?: number }>;
  streams: Map<number, { channel: ChannelName; isOwn: boolean }>;
  /** Labels of ours that the client has closed. */
  declined: Set<string>;
  readonly messages: Allowance;
  readonly openings: Allowance;
  readonly heard: DataAllowance;
}

/** Decides which message of a data channel goes to whom in one room. Uses no sockets and no clock. */
export class DataRouter {
  readonly #events: DataRouterEvents;
  readonly #members = new Map<string, Member>();
  /** Labels opened by clients. */
  readonly #labels = new Map<string, Label>();
  /** By worker. */
  readonly #links = new Map<number, RouterLink>();
  readonly #counters: DataCounters;
  /** Labels that the backend listens to. */
  #dataEvents: ReadonlySet<string> = new Set();
  readonly #heard = new DataAllowance(HEARD.room);
  readonly #plain = new DataAllowance(PLAIN);

  constructor(events: DataRouterEvents, counters: DataCounters) {
    this.#events = events;
    this.#counters = counters;
  }

  /** Adds a client, towards which channels can be opened from now on. */
  join(peerId: string, port: DataPort, { send, receive }: { send: boolean; receive: boolean }): void {
    this.leave(peerId);
    const member: Member = {
      peerId,
      port,
      header: senderHeader(peerId),
      maySend: send,
      mayReceive: receive,
      labels: new Map(),
      streams: new Map(),
      declined: new Set(),
      messages: new Allowance(RATE),
      openings: new Allowance(OPENINGS),
      heard: new DataAllowance(HEARD.sender),
    };
    this.#members.set(peerId, member);
    for (const { channel } of this.#labels.values()) this.#offer(member, channel);
  }

  /** Removes a client. Idempotent. */
  leave(peerId: string): void {
    const member = this.#members.get(peerId);
    if (member === undefined) return;
    this.#members.delete(peerId);
    for (const { channel, isOwn } of member.streams.values()) if (isOwn) this.#ownClosed(member, channel.label);
  }

  /** Replaces the labels that the backend listens to, starting with the next message. */
  setDataEvents(labels: readonly string[]): void {
    this.#dataEvents = new Set(labels);
  }

  /** Takes effect with the next message. */
  permit(peerId: string, { send, receive }: { send: boolean; receive: boolean }): void {
    const member = this.#members.get(peerId);
    if (member === undefined) return;
    member.maySend = send;
    member.mayReceive = receive;
  }

  /** Returns false if plain channels have exhausted the room's allowance. */
  admitsPlain(nowMs: number, bytes: number): boolean {
    return this.#plain.take(nowMs, bytes, this.#workers);
  }

  /** Records that the client has opened a channel. */
  opened(peerId: string, stream: number, channel: ChannelName, nowMs: number): void {
    const member = this.#members.get(peerId);
    if (member === undefined) return;
    // Do not report it: each refused channel would cost the room a message.
    if (!member.openings.take(nowMs)) {
      this.#counters.dropped.data_rate++;
      return member.port.close(stream);
    }
    const { label } = channel;
    const own = member.labels.get(label)?.own;
    if (own !== undefined) this.#close(member, own);
    const refusal = this.#refusal(member, label);
    if (refusal !== undefined) {
      member.port.close(stream);
      return this.#events.channelClosed(peerId, label, refusal);
    }
    member.streams.set(stream, { channel, isOwn: true });
    member.labels.set(label, { ...member.labels.get(label), own: stream });
    member.declined.delete(label);
    if (label === BACKEND_LABEL) return this.#events.messageChannel(peerId, true);
    const known = this.#labels.get(label);
    if (known !== undefined) known.openers++;
    else this.#labels.set(label, { channel, openers: 1, elsewhere: new Set() });
    for (const other of this.#members.values()) if (other !== member) this.#offer(other, channel);
    if (this.#labels.get(label)!.openers === 1) for (const link of this.#links.values()) link.opened(channel);
  }

  /** Records that the client has closed a channel. */
  closed(peerId: string, stream: number): void {
    const member = this.#members.get(peerId);
    const known = member?.streams.get(stream);
    if (member === undefined || known === undefined) return;
    if (!known.isOwn) member.declined.add(known.channel.label);
    this.#forget(member, stream);
  }

  /** Takes one message from a client. */
  message(peerId: string, stream: number, isText: boolean, frame: Buffer, nowMs: number): void {
    const sender = this.#members.get(peerId);
    const known = sender?.streams.get(stream);
    if (sender === undefined || known === undefined) return;
    const { dropped, dataMessages } = this.#counters;
    if (!sender.messages.take(nowMs)) return void dropped.data_rate++;
    const { label, kind } = known.channel;
    if (!sender.maySend || label === BACKEND_LABEL) return void dropped.data_denied++;
    const content = readClientFrame(frame);
    if (content === undefined) return void dropped.data_malformed++;
    if (content.message.length > MAX_MESSAGE_BYTES) return this.#punish(sender, stream, 'too_large');

    dataMessages.received++;
    if (this.#dataEvents.has(label)) this.#hear(sender, label, { ...content, isText }, nowMs);
    const outgoing = Buffer.concat([sender.header, content.message]);
    const message = { isText, reliable: isReliable(kind), frame: outgoing, kind };
    for (const receiver of this.#receivers(sender, content.receivers)) this.#deliverOn(label, receiver, message);
    if (this.#links.size === 0 || this.#sendElsewhere(label, content.receivers, message)) return;
    if (message.reliable) this.#punish(sender, stream, 'backlog');
    else dropped.data_backlog++;
  }

  /** Returns false if the message does not reach a worker because that worker is too far behind. */
  #sendElsewhere(label: string, ids: ReadonlySet<string> | undefined, message: Omit<OutgoingMessage, 'stream'>) {
    const { isText, kind } = message;
    const receivers = ids === undefined ? undefined : [...ids].filter((id) => !this.#members.has(id));
    if (receivers?.length === 0) return true;
    // Copy: a view would transfer the whole underlying memory.
    const crossing = { label, isText, kind, frame: new Uint8Array(message.frame), receivers };
    let isSent = true;
    for (const link of this.#links.values()) isSent = link.send(crossing) && isSent;
    return isSent;
  }

  // --- the same room on other workers

  linkUp(worker: number, link: RouterLink): void {
    this.#links.set(worker, link);
    for (const { channel, openers } of this.#labels.values()) if (openers > 0) link.opened(channel);
  }

  linkDown(worker: number): void {
    this.#links.delete(worker);
    for (const label of this.#labels.keys()) this.closedElsewhere(worker, label);
  }

  openedElsewhere(worker: number, channel: ChannelName): void {
    const { label } = channel;
    const known = this.#labels.get(label);
    if (known !== undefined) return void known.elsewhere.add(worker);
    if (this.#labels.size >= MAX_LABELS) return;
    this.#labels.set(label, { channel, openers: 0, elsewhere: new Set([worker]) });
    for (const member of this.#members.values()) this.#offer(member, channel);
  }

  closedElsewhere(worker: number, label: string): void {
    if (this.#labels.get(label)?.elsewhere.delete(worker) === true) this.#dropUnused(label);
  }

  /** Delivers a message of a client on another worker. */
  fromElsewhere({ label, isText, kind, frame, receivers }: CrossingData): void {
    const message = { isText, reliable: isReliable(kind), frame: asBuffer(frame), kind };
    const members = receivers?.flatMap((id) => this.#members.get(id) ?? []) ?? this.#members.values();
    for (const receiver of members) this.#deliverOn(label, receiver, message);
  }

  /** Sends a message of the backend. Returns false if this client has no channel for it. */
  fromBackend(peerId: string, text: string): boolean {
    const member = this.#members.get(peerId);
    const stream = member?.labels.get(BACKEND_LABEL)?.own;
    if (member === undefined || stream === undefined) return false;
    const frame = Buffer.concat([senderHeader(''), Buffer.from(text)]);
    this.#deliver(member, { stream, isText: true, reliable: true, frame, kind: { ordered: true } });
    return true;
  }

  /** Returns a client's channels. */
  channels(peerId: string): ChannelStats[] {
    const streams = this.#members.get(peerId)?.streams.values() ?? [];
    return [...streams].map(({ channel: { label, kind }, isOwn }) => ({
      label,
      openedBy: isOwn ? 'client' : 'server',
      ...kind,
    }));
  }

  #hear(
    sender: Member,
    label: string,
    { receivers, message, isText }: ClientFrame & { isText: boolean },
    nowMs: number,
  ) {
    const { length } = message;
    const isAllowed = sender.heard.take(nowMs, length) && this.#heard.take(nowMs, length, this.#workers);
    if (!isAllowed) return void this.#counters.dropped.data_unheard++;
    // Copy: a view would transfer the whole underlying memory to the other thread.
    const data = isText ? message.toString() : new Uint8Array(message);
    this.#events.heard(sender.peerId, { label, to: [...(receivers ?? [])], data });
  }

  /** Number of the room's workers, which share its limits equally. */
  get #workers(): number {
    return this.#links.size + 1;
  }

  #refusal(member: Member, label: string): DataCloseReason | undefined {
    const bytes = Buffer.byteLength(label);
    if (bytes === 0 || bytes > 64) return 'bad_label';
    let own = 0;
    for (const { isOwn } of member.streams.values()) if (isOwn) own++;
    const isNew = label !== BACKEND_LABEL && !this.#labels.has(label);
    // Otherwise a few clients could use up the room's labels.
    const allowed = isNew ? Math.min(MAX_OWN_CHANNELS, MAX_LABELS - this.#labels.size) : MAX_OWN_CHANNELS;
    return own >= allowed ? 'too_many' : undefined;
  }

  #receivers(sender: Member, ids: ReadonlySet<string> | undefined): Member[] {
    if (ids === undefined) return [...this.#members.values()].filter((member) => member !== sender);
    return [...ids].flatMap((id) => this.#members.get(id) ?? []).filter((member) => member !== sender);
  }

  /** Delivers a message on the receiver's channel of this label, if it has one. */
  #deliverOn(label: string, receiver: Member, message: Omit<OutgoingMessage, 'stream'>): void {
    const to = receiver.labels.get(label);
    const stream = to?.own ?? to?.ours;
    if (stream !== undefined && receiver.mayReceive) this.#deliver(receiver, { ...message, stream });
  }

  #deliver(receiver: Member, message: OutgoingMessage): void {
    if (receiver.port.send(message)) this.#counters.dataMessages.sent++;
    else this.#punish(receiver, message.stream, 'backlog');
  }

  /** Opens a channel towards a client that lacks the label. */
  #offer(member: Member, channel: ChannelName): void {
    const { label } = channel;
    if (member.labels.has(label) || member.declined.has(label)) return;
    const stream = member.port.open(channel);
    if (stream === undefined) return;
    member.streams.set(stream, { channel, isOwn: false });
    member.labels.set(label, { ours: stream });
  }

  #punish(member: Member, stream: number, reason: DataCloseReason): void {
    const label = member.streams.get(stream)?.channel.label ?? '';
    // Our channel is not opened again towards this client.
    if (member.streams.get(stream)?.isOwn === false) member.declined.add(label);
    this.#close(member, stream);
    this.#events.channelClosed(member.peerId, label, reason);
  }

  #close(member: Member, stream: number): void {
    member.port.close(stream);
    this.#forget(member, stream);
  }

  #forget(member: Member, stream: number): void {
    const known = member.streams.get(stream);
    if (known === undefined) return;
    member.streams.delete(stream);
    const { label } = known.channel;
    const { own, ours } = member.labels.get(label) ?? {};
    const left = known.isOwn ? ours : own;
    if (left === undefined) member.labels.delete(label);
    else member.labels.set(label, known.isOwn ? { ours: left } : { own: left });
    if (known.isOwn) this.#ownClosed(member, label);
  }

  /** Handles the end of a channel that a client opened. With the last one of its label, ours close as well. */
  #ownClosed(member: Member, label: string): void {
    if (label === BACKEND_LABEL) return this.#events.messageChannel(member.peerId, false);
    const known = this.#labels.get(label);
    if (known === undefined || --known.openers > 0) return;
    for (const link of this.#links.values()) link.closed(label);
    this.#dropUnused(label);
  }

  /** Closes our channels of a label that no client has open any more. */
  #dropUnused(label: string): void {
    const known = this.#labels.get(label);
    if (known === undefined || known.openers > 0 || known.elsewhere.size > 0) return;
    this.#labels.delete(label);
    for (const other of this.#members.values()) {
      other.declined.delete(label);
      const ours = other.labels.get(label)?.ours;
      if (ours !== undefined) this.#close(other, ours);
    }
  }
}
