import type { ActorRef, ActorSystem, Behaviour, RemoteActors } from '@bloom/actors';
import type { NotificationBus } from '@bloom/notifications';
import type { Notification } from '@bloom/protocol';

const EVENTS_ACTOR = 'events_node';
const INTEREST_INTERVAL_MS = 500;

type EventsProtocol = {
  notification: (message: { notification: Notification }) => void;
  metrics: (message: { report: unknown }) => void;
  interest: (message: { node: string; metrics: boolean }) => void;
};

export interface EventRelayOptions {
  system: ActorSystem;
  remote: RemoteActors;
  /** The name of this node. */
  self: string;
  bus: NotificationBus;
  /** True while a client of this node subscribes to metrics reports. */
  wantsMetrics: () => boolean;
}

/**
 * Brings the events of every node to the subscribers of all: each node sends what arose on it to all members, once.
 * Metrics reports go only to members that declared interest.
 */
export class EventRelay {
  readonly #options: EventRelayOptions;
  /** Members with subscribers for the metrics report of this node. */
  readonly #interested = new Set<string>();
  readonly #refs = new Map<string, ActorRef<EventsProtocol>>();
  readonly #timer: NodeJS.Timeout;
  /** The interest that the members know of. */
  #declared = false;

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
        interest: (_state, { node, metrics }) => void (metrics ? interested.add(node) : interested.delete(node)),
      },
      inspect: () => ({ metricsWantedBy: [...interested] }),
    };
    const actor = system.spawn(behaviour, { name: EVENTS_ACTOR, mailbox: { essential: ['notification', 'interest'] } });
    system.register(EVENTS_ACTOR, actor);
    this.#timer = setInterval(() => this.#declareInterest(), INTEREST_INTERVAL_MS);
    this.#timer.unref();
    bus.subscribe((envelope) => {
      if (envelope.source !== 'local') return;
      if (envelope.kind === 'notification') {
        const { notification } = envelope;
        for (const node of this.#members()) system.cast(this.#actorOn(node), { type: 'notification', notification });
      } else {
        const { report } = envelope;
        for (const node of interested) system.cast(this.#actorOn(node), { type: 'metrics', report });
      }
    });
  }

  /** True while a member has a subscriber for the metrics report of this node. */
  get metricsWanted(): boolean {
    return this.#interested.size > 0;
  }

  memberJoined(node: string): void {
    if (this.#declared) this.#sendInterest(node, true);
  }

  memberLeft(node: string): void {
    this.#interested.delete(node);
    this.#refs.delete(node);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #members(): string[] {
    return this.#options.remote.node?.nodes('members') ?? [];
  }

  #declareInterest(): void {
    const wanted = this.#options.wantsMetrics();
    if (wanted === this.#declared) return;
    this.#declared = wanted;
    for (const node of this.#members()) this.#sendInterest(node, wanted);
  }

  #sendInterest(node: string, metrics: boolean): void {
    this.#options.system.cast(this.#actorOn(node), { type: 'interest', node: this.#options.self, metrics });
  }

  #actorOn(node: string): ActorRef<EventsProtocol> {
    const known = this.#refs.get(node);
    if (known !== undefined) return known;
    const ref = this.#options.remote.remote<EventsProtocol>(node, EVENTS_ACTOR);
    this.#refs.set(node, ref);

    return ref;
  }
}
