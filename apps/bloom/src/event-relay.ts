import type { ActorRef, ActorSystem, Behaviour, RemoteActors } from '@bloom/actors';
import type { Interest, NotificationBus } from '@bloom/notifications';
import type { Notification } from '@bloom/protocol';

const EVENTS_ACTOR = 'events_node';
const INTEREST_INTERVAL_MS = 500;
/** Members are sent the interest anew this often: a full link drops messages, and its node would never send an event. */
const RESTATE_INTERVAL_MS = 10_000;

/** Events that members get only while they have subscribers for them. */
const KINDS = ['metrics', 'data'] as const;
type Kind = (typeof KINDS)[number];

type EventsProtocol = {
  notification: (message: { notification: Notification }) => void;
  metrics: (message: { report: unknown }) => void;
  data: (message: { notification: Notification }) => void;
  /** Nodes of earlier versions do not name `data`. */
  interest: (message: { node: string; metrics: boolean; data?: boolean }) => void;
};

export interface EventRelayOptions {
  system: ActorSystem;
  remote: RemoteActors;
  /** The name of this node. */
  self: string;
  bus: NotificationBus;
  /** True while a client of this node subscribes to events of this kind. */
  wants: (kind: keyof Interest) => boolean;
}

/**
 * Brings the events of every node to the subscribers of all: each node sends what arose on it to all members, once.
 * Metrics reports and messages of data channels go only to members that declared interest.
 */
export class EventRelay {
  readonly #options: EventRelayOptions;
  /** Members with subscribers for what arises on this node. */
  readonly #interested: Record<Kind, Set<string>> = { metrics: new Set(), data: new Set() };
  readonly #refs = new Map<string, ActorRef<EventsProtocol>>();
  readonly #timers: NodeJS.Timeout[];
  /** The interest that the members know of. */
  #declared: Record<Kind, boolean> = { metrics: false, data: false };

  constructor(options: EventRelayOptions) {
    this.#options = options;
    const { system, bus } = options;
    const interested = this.#interested;
    const behaviour: Behaviour<EventsProtocol, null> = {
      kind: 'events-node',
      init: () => null,
      handlers: {
        notification: (_state, { notification }) => bus.publish(notification, 'remote'),
        metrics: (_state, { report }) => bus.publishMetrics(report, 'remote'),
        data: (_state, { notification }) => bus.publish(notification, 'remote'),
        interest: (_state, { node, ...wanted }) => {
          // It may have gone since it sent this.
          const isMember = this.#members().includes(node);
          for (const kind of KINDS) {
            if (isMember && wanted[kind] === true) interested[kind].add(node);
            else interested[kind].delete(node);
          }
        },
      },
      inspect: () => ({ metricsWantedBy: [...interested.metrics], dataWantedBy: [...interested.data] }),
    };
    const actor = system.spawn(behaviour, { name: EVENTS_ACTOR, mailbox: { essential: ['notification', 'interest'] } });
    system.register(EVENTS_ACTOR, actor);
    this.#timers = [
      setInterval(() => this.#declareInterest(), INTEREST_INTERVAL_MS).unref(),
      setInterval(() => this.#restateInterest(), RESTATE_INTERVAL_MS).unref(),
    ];
    bus.subscribe((envelope) => {
      if (envelope.source !== 'local') return;
      if (envelope.kind === 'metrics') {
        const { report } = envelope;
        for (const node of interested.metrics) system.cast(this.#actorOn(node), { type: 'metrics', report });
      } else {
        const { kind: type, notification } = envelope;
        const receivers = type === 'data' ? interested.data : this.#members();
        for (const node of receivers) system.cast(this.#actorOn(node), { type, notification });
      }
    });
  }

  /** True while a member has a subscriber for the metrics report of this node. */
  get metricsWanted(): boolean {
    return this.#interested.metrics.size > 0;
  }

  memberJoined(node: string): void {
    if (this.#isInterested) this.#sendInterest(node);
  }

  memberLeft(node: string): void {
    for (const kind of KINDS) this.#interested[kind].delete(node);
    this.#refs.delete(node);
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  get #isInterested(): boolean {
    return KINDS.some((kind) => this.#declared[kind]);
  }

  #members(): string[] {
    return this.#options.remote.node?.nodes('members') ?? [];
  }

  #declareInterest(): void {
    const { wants } = this.#options;
    if (KINDS.every((kind) => wants(kind) === this.#declared[kind])) return;
    this.#declared = { metrics: wants('metrics'), data: wants('data') };
    for (const node of this.#members()) this.#sendInterest(node);
  }

  #restateInterest(): void {
    if (this.#isInterested) for (const node of this.#members()) this.#sendInterest(node);
  }

  #sendInterest(node: string): void {
    this.#options.system.cast(this.#actorOn(node), { type: 'interest', node: this.#options.self, ...this.#declared });
  }

  #actorOn(node: string): ActorRef<EventsProtocol> {
    const known = this.#refs.get(node);
    if (known !== undefined) return known;
    const ref = this.#options.remote.remote<EventsProtocol>(node, EVENTS_ACTOR);
    this.#refs.set(node, ref);

    return ref;
  }
}
