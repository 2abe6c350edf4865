/** The receivers of a history's webhooks, and the rules for what arrives at them. */
import { decodeServerMessage, encodeServerMessage, type Notification } from '@bloom/protocol';
import { WebhookError, type WebhookPoster } from '@bloom/notifications';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';
import type { Machine } from './virtual-world.js';

/** The address of the receiver of all rooms. */
export const RECEIVER = 'http://receiver.sim/';
/** `JF_WEBHOOK_RETRIES` of all nodes. */
export const RETRIES = 2;
/** Time limit of a request. */
const TIMEOUT_MS = 5_000;
/** Shares of the requests that fail before they arrive, and of the answers that are lost. */
const FAILURES = 0.1;
const LOST_ANSWERS = 0.1;
const LATENCY_MS = [1, 40] as const;

interface Arrival {
  readonly event: string;
  /** True if the node does not know that it arrived, and will repeat it. */
  readonly isUnanswered: boolean;
  readonly sender: Machine;
}

export class Receivers {
  readonly #cluster: VirtualCluster;
  readonly #arrivals = new Map<string, Arrival[]>();
  /** Attempts to send each event of a room that did not arrive. */
  readonly #failures = new Map<string, number>();

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
  }

  /** Sends the webhooks of a machine through the virtual network. */
  posterOf(machine: Machine): WebhookPoster {
    const { world } = this.#cluster;
    const post = (_url: string, body: Uint8Array): Promise<void> =>
      new Promise((resolve, reject) => {
        const event = keyOf(body);
        const latencyMs = world.between(...LATENCY_MS);
        const fate = world.random();
        if (fate < FAILURES) {
          this.#failures.set(event, (this.#failures.get(event) ?? 0) + 1);
          world.schedule(machine, latencyMs, () => reject(new WebhookError('status 500')));
          return;
        }
        const isUnanswered = fate < FAILURES + LOST_ANSWERS;
        world.schedule(world.outside, latencyMs, () => {
          const { roomId } = decodeServerMessage(body) as Notification;
          const arrivals = this.#arrivals.get(roomId) ?? [];
          this.#arrivals.set(roomId, [...arrivals, { event, isUnanswered, sender: machine }]);
        });
        if (isUnanswered) world.schedule(machine, TIMEOUT_MS, () => reject(new WebhookError('no answer')));
        else world.schedule(machine, 2 * latencyMs, resolve);
      });
    return { post, close: () => undefined };
  }

  /** Checks, after the end, that a room's receiver got what its owners published: once, in order, up to a crash. */
  check(roomId: string, owners: readonly VirtualNode[], published: readonly Notification[]): void {
    const arrivals = withoutRepeats(this.#arrivals.get(roomId) ?? []);
    let next = 0;
    for (const notification of published) {
      const event = keyOf(encodeServerMessage(notification));
      if (arrivals[next]?.event === event) next += 1;
      else if ((this.#failures.get(event) ?? 0) > RETRIES) continue;
      // Left out while many events wait.
      else if (notification.type === 'dataMessage') continue;
      else if (next === arrivals.length && owners.at(-1)?.machine.alive !== true) break;
      else {
        this.#cluster.broken(`the receiver of room ${roomId} did not get ${notification.type} in its turn`);
        return;
      }
    }
    if (next < arrivals.length) this.#cluster.broken(`the receiver of room ${roomId} got an event twice`);
  }

  /**
   * Checks, after the end, the webhooks of a room that was taken over: each node sent what was published once and in
   * order, and all arrived that was published after the last takeover, `before` which events were published. What a
   * lost owner had not delivered is lost with it.
   */
  checkTaken(roomId: string, published: readonly Notification[], before: number): void {
    const keys = published.map((notification) => keyOf(encodeServerMessage(notification)));
    const all = this.#arrivals.get(roomId) ?? [];
    for (const machine of new Set(all.map(({ sender }) => sender))) {
      let next = 0;
      for (const { event } of withoutRepeats(all.filter(({ sender }) => sender === machine))) {
        next = keys.indexOf(event, next) + 1;
        if (next > 0) continue;
        this.#cluster.broken(`the receiver of room ${roomId} got an event twice or out of order from ${machine.host}`);
        return;
      }
    }
    const heirs = this.#cluster.takeovers.heirs(roomId);
    if (heirs.length === 0 || !heirs.every(({ machine }) => machine.alive)) return;
    for (const notification of published.slice(before)) {
      const event = keyOf(encodeServerMessage(notification));
      const hasArrived = all.some((arrival) => arrival.event === event);
      if (hasArrived || notification.type === 'dataMessage' || (this.#failures.get(event) ?? 0) > RETRIES) continue;
      this.#cluster.broken(`the receiver of room ${roomId} did not get ${notification.type} after a takeover`);
      return;
    }
  }
}

/** Leaves out repeats of events whose answers were lost. */
function withoutRepeats(arrivals: readonly Arrival[]): Arrival[] {
  return arrivals.filter(({ event }, at, all) => all[at - 1]?.isUnanswered !== true || all[at - 1]?.event !== event);
}

function keyOf(body: Uint8Array): string {
  return Buffer.from(body).toString('base64');
}
