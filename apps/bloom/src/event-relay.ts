import { type ActorRef, type ActorSystem, type Behaviour, later, type RemoteActors } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Interest, NotificationBus } from '@bloom/notifications';
import type { Notification } from '@bloom/protocol';
import type { RoomRegistry } from '@bloom/rooms';
import { systemClock, Timer, type Clock } from '@bloom/time';
import { EVENTS_ACTOR, EVENTS_SHAPES, type EventsProtocol } from './event-messages.js';
import { EventSenders, type EventSendersOptions } from './event-senders.js';

const INTEREST_INTERVAL_MS = 500;
/** Interval at which the interest is sent again: a full link drops messages, and its node would never send an event. */
const RESTATE_INTERVAL_MS = 10_000;
/** Limits of the backlog for a member whose link is full, in events and bytes. */
const MAX_BACKLOG = 10_000;
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;
const CATCH_UP_MS = 250;
/** How long a member has to confirm that it has all events, and the version of the member protocol that knows how. */
const FLUSH_TIMEOUT_MS = 600;
const FLUSHES = 2;

/** Events sent to members only while they have subscribers for them. */
const KINDS = ['metrics', 'data', 'recording'] as const;
type Kind = (typeof KINDS)[number];

/** An event that must arrive. */
interface News {
  type: 'notification' | 'recording';
  notification: Notification;
}

/** Events that a full link refused, oldest first. */
interface Backlog {
  readonly waiting: { news: News; bytes: number }[];
  bytes: number;
  dropped: number;
}

export interface EventRelayOptions {
  system: ActorSystem;
  remote: RemoteActors;
  /** Name of this node. */
  self: string;
  bus: NotificationBus;
  /** True while a client of this node subscribes to events of this kind. */
  wants: (kind: keyof Interest) => boolean;
  log: Log;
  clock?: Clock;
  /** Knows the members that do not answer although they have a link. Default: none are known. */
  silentMembers?: Pick<RoomRegistry['silentMembers'], 'guard' | 'has'>;
  /** Knows which rooms members may speak for. Default: all. */
  rooms?: EventSendersOptions['rooms'];
}

/**
 * Brings the events of every node to all subscribers: each node sends its own events once to every member. Metrics
 * reports and data channel messages go only to members that declared interest, and are lost if a link is full.
 */
export class EventRelay {
  readonly #options: EventRelayOptions;
  /** Members with subscribers for events of this node. */
  readonly #interested: Record<Kind, Set<string>> = {
    metrics: new Set(),
    data: new Set(),
    recording: new Set(),
  };
  /** Members that accept metrics reports as text. */
  readonly #takeText = new Set<string>();
  readonly #refs = new Map<string, ActorRef<EventsProtocol>>();
  readonly #declaring: Timer;
  readonly #restating: Timer;
  readonly #senders: EventSenders | undefined;
  /** Keyed by member. */
  readonly #backlogs = new Map<string, Backlog>();
  readonly #catchUp: Timer;
  /** The interest last declared to the members. */
  #declared: Record<Kind, boolean> = { metrics: false, data: false, recording: false };

  constructor(options: EventRelayOptions) {
    this.#options = options;
    const { system, bus, log, rooms, clock = systemClock } = options;
    const isMember = (node: string): boolean => this.#members().includes(node);
    if (rooms !== undefined) this.#senders = new EventSenders({ bus, rooms, isMember, log, clock });
    this.#catchUp = new Timer(clock);
    this.#declaring = new Timer(clock);
    this.#restating = new Timer(clock);
    const interested = this.#interested;
    const behaviour: Behaviour<EventsProtocol, null> = {
      kind: 'events-node',
      shapes: EVENTS_SHAPES,
      init: () => null,
      handlers: {
        notification: (_state, { notification, node }) => this.#take(notification, node),
        metrics: (_state, { report }) => bus.publishMetrics(report, 'remote'),
        data: (_state, { notification, node }) => this.#take(notification, node),
        recording: (_state, { notification }) => bus.publish(notification, 'remote'),
        flush: (_state, { node }) => {
          const waits = node === undefined ? undefined : this.#senders?.settled(node);

          return waits === undefined ? true : later(waits.then(() => true));
        },
        interest: (_state, { node, ...wanted }) => {
          // The member may have left after sending this.
          const isIn = isMember(node);
          for (const kind of KINDS) {
            if (isIn && wanted[kind] === true) interested[kind].add(node);
            else interested[kind].delete(node);
          }
          if (isIn && wanted.text === true) this.#takeText.add(node);
        },
      },
      inspect: () => ({ metricsWantedBy: [...interested.metrics], dataWantedBy: [...interested.data] }),
    };
    const actor = system.spawn(behaviour, {
      name: EVENTS_ACTOR,
      mailbox: { essential: ['notification', 'recording', 'flush', 'interest'] },
      permanent: true,
    });
    system.register(EVENTS_ACTOR, actor);
    this.#declaring.repeat(INTEREST_INTERVAL_MS, () => this.#declareInterest());
    this.#restating.repeat(RESTATE_INTERVAL_MS, () => this.#restateInterest());
    bus.subscribe((envelope) => {
      if (envelope.source !== 'local') return;
      if (envelope.kind === 'metrics') {
        this.#sendMetrics(envelope.report);
      } else {
        const { kind, notification } = envelope;
        if (kind === 'data') {
          for (const node of interested.data) system.cast(this.#actorOn(node), { type: 'data', notification });
          return;
        }
        const receivers = kind === 'notification' ? this.#members() : interested[kind];
        const news = { type: kind, notification };
        for (const node of receivers) this.#notify(node, news, () => envelope.bytes.byteLength);
      }
    });
  }

  /** True while a member has a subscriber for this node's metrics report. */
  get metricsWanted(): boolean {
    return this.#interested.metrics.size > 0;
  }

  /**
   * Resolves with whether every member has all events published here so far. Silent ones are left out: their events
   * wait on the link in order, and one frozen member must not keep the rooms of others from moving.
   */
  async delivered(): Promise<boolean> {
    const { system, remote, silentMembers } = this.#options;
    const isSilent = (node: string): boolean => silentMembers?.has(node) === true;
    if ([...this.#backlogs.keys()].some((node) => !isSilent(node))) return false;
    const answers = this.#members().map((node) => {
      // One of an earlier release may have joined after the move began.
      if (remote.node?.speaks(node, FLUSHES) !== true) return isSilent(node);
      const flush = (): Promise<boolean> => system.call(this.#actorOn(node), { type: 'flush' }, FLUSH_TIMEOUT_MS);
      const answer = silentMembers === undefined ? flush() : silentMembers.guard(node, flush);
      return answer.catch(() => isSilent(node));
    });

    return (await Promise.all(answers)).every(Boolean);
  }

  memberJoined(node: string): void {
    if (this.#isInterested) this.#sendInterest(node);
  }

  memberLeft(node: string): void {
    for (const kind of KINDS) this.#interested[kind].delete(node);
    this.#takeText.delete(node);
    this.#refs.delete(node);
    this.#backlogs.delete(node);
  }

  close(): void {
    for (const timer of [this.#declaring, this.#restating, this.#catchUp]) timer.stop();
    this.#senders?.close();
  }

  get #isInterested(): boolean {
    return KINDS.some((kind) => this.#declared[kind]);
  }

  /** Publishes an event of another member; `node` is missing in those of this process. */
  #take(notification: Notification, node: string | undefined): void {
    if (this.#senders === undefined || node === undefined) this.#options.bus.publish(notification, 'remote');
    else this.#senders.take(node, notification);
  }

  #members(): string[] {
    return this.#options.remote.node?.nodes('members') ?? [];
  }

  #sendMetrics(report: unknown): void {
    let text: string | undefined;
    for (const node of this.#interested.metrics) {
      const takesText = this.#takeText.has(node);
      if (takesText) text ??= JSON.stringify(report);
      this.#options.system.cast(this.#actorOn(node), { type: 'metrics', report: takesText ? text : report });
    }
  }

  #notify(node: string, news: News, bytesOf: () => number): void {
    let backlog = this.#backlogs.get(node);
    if (backlog === undefined) {
      if (this.#send(node, news)) return;
      backlog = { waiting: [], bytes: 0, dropped: 0 };
      this.#backlogs.set(node, backlog);
    }
    const bytes = bytesOf();
    backlog.waiting.push({ news, bytes });
    backlog.bytes += bytes;
    while (backlog.waiting.length > MAX_BACKLOG || backlog.bytes > MAX_BACKLOG_BYTES) {
      backlog.bytes -= backlog.waiting.shift()?.bytes ?? 0;
      backlog.dropped += 1;
    }
    if (!this.#catchUp.running) this.#catchUp.start(CATCH_UP_MS, () => this.#sendBacklogs());
  }

  #sendBacklogs(): void {
    for (const [node, backlog] of this.#backlogs) {
      const { waiting, dropped } = backlog;
      let sent = 0;
      for (const { news, bytes } of waiting) {
        if (!this.#send(node, news)) break;
        backlog.bytes -= bytes;
        sent += 1;
      }
      waiting.splice(0, sent);
      if (waiting.length > 0) continue;
      this.#backlogs.delete(node);
      if (dropped > 0) this.#options.log.warn('cluster.events_dropped', { node, events: dropped });
    }
    if (this.#backlogs.size > 0) this.#catchUp.start(CATCH_UP_MS, () => this.#sendBacklogs());
  }

  #send(node: string, news: News): boolean {
    return this.#options.system.cast(this.#actorOn(node), news);
  }

  #declareInterest(): void {
    const { wants } = this.#options;
    if (KINDS.every((kind) => wants(kind) === this.#declared[kind])) return;
    this.#declared = { metrics: wants('metrics'), data: wants('data'), recording: wants('recording') };
    for (const node of this.#members()) this.#sendInterest(node);
  }

  #restateInterest(): void {
    if (this.#isInterested) for (const node of this.#members()) this.#sendInterest(node);
  }

  #sendInterest(node: string): void {
    const { system, self } = this.#options;
    system.cast(this.#actorOn(node), { type: 'interest', node: self, text: true, ...this.#declared });
  }

  #actorOn(node: string): ActorRef<EventsProtocol> {
    const known = this.#refs.get(node);
    if (known !== undefined) return known;
    const ref = this.#options.remote.remote(node, EVENTS_ACTOR, EVENTS_SHAPES);
    this.#refs.set(node, ref);

    return ref;
  }
}
