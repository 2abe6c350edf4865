import type { Log } from '@bloom/log';
import { inTime, sleep, systemClock, type Clock } from '@bloom/time';
import { RoomError } from '../room-service.js';

/** A call that has not been answered by then causes a ping. */
const PATIENCE_MS = 100;
/** A member that has neither answered a ping by then nor sent anything else is silent. */
const PING_TIMEOUT_MS = 1_000;
/** Pause between the pings of a silent member, whose link may also refuse them at once. */
const PING_INTERVAL_MS = 200;

export interface SilentMembersOptions {
  /** Members with a link, without this node. */
  members: () => readonly string[];
  /** Asks a member for a sign of life. Rejects when there is none within `timeoutMs`. */
  ping: (node: string, timeoutMs: number) => Promise<unknown>;
  /** Returns the bytes received from a member so far; undefined without a link. */
  received: (node: string) => number | undefined;
  log: Log;
  clock?: Clock;
}

/**
 * Knows which members of the cluster do not answer although their link is up: frozen, or cut off and not yet dropped. The
 * whole node asks this one place, so that only the first call to such a member waits for it (1.1 s), whatever it is about.
 */
export class SilentMembers {
  readonly #options: SilentMembersOptions;
  readonly #clock: Clock;
  readonly #silent = new Set<string>();
  /** Pings on their way, which resolve to whether the member is alive. */
  readonly #pings = new Map<string, Promise<boolean>>();

  constructor(options: SilentMembersOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  has(node: string): boolean {
    return this.#silent.has(node);
  }

  list(): string[] {
    return [...this.#silent];
  }

  /**
   * Returns the outcome of a call to a member, and does not wait for it when the member is or becomes silent. A member that
   * is merely slow keeps the time limit of the call.
   * @throws RoomError `MEMBER_SILENT`
   */
  async guard<T>(node: string, call: () => Promise<T>): Promise<T> {
    if (this.#silent.has(node)) throw silent(node);

    const answer = call();
    const first = await inTime(answer.then(settled, settled), {
      timeoutMs: PATIENCE_MS,
      late: () => undefined,
      clock: this.#clock,
    });
    if (first !== undefined) return answer;

    const alive = this.#ping(node);
    const unlessSilent = alive.then((isAlive) => {
      if (!isAlive) throw silent(node);
      return answer;
    });
    return Promise.race([answer, unlessSilent]);
  }

  /**
   * Returns the outcome of a call that has just been made, with a time limit within which every living member answers, and
   * takes the member for silent if it does not.
   */
  async expect<T>(node: string, call: Promise<T>): Promise<T> {
    if (await this.#isQuiet(node, call)) this.#missed(node);
    return call;
  }

  /**
   * Returns whether a call fails and nothing has arrived from the member meanwhile: on a slow link the answer waits behind
   * what the member was already sending.
   */
  async #isQuiet(node: string, call: Promise<unknown>): Promise<boolean> {
    const before = this.#options.received(node);
    const failed = await call.then(
      () => false,
      () => true,
    );
    return failed && this.#options.received(node) === before;
  }

  #missed(node: string): void {
    if (this.#silent.has(node) || !this.#isMember(node)) return;
    this.#silent.add(node);
    this.#options.log.warn('cluster.member_silent', { node });
    void this.#awaitAnswer(node);
  }

  #ping(node: string): Promise<boolean> {
    let ping = this.#pings.get(node);
    if (ping === undefined) {
      ping = this.expect(node, this.#options.ping(node, PING_TIMEOUT_MS)).then(
        () => true,
        // Without a link the call itself fails with the reason.
        () => !this.#silent.has(node),
      );
      this.#pings.set(node, ping);
      void ping.finally(() => this.#pings.delete(node));
    }

    return ping;
  }

  async #awaitAnswer(node: string): Promise<void> {
    while (this.#isMember(node)) {
      if (!(await this.#isQuiet(node, this.#options.ping(node, PING_TIMEOUT_MS)))) {
        this.#options.log.info('cluster.member_answers', { node });
        break;
      }
      await sleep(PING_INTERVAL_MS, { clock: this.#clock });
    }
    this.#silent.delete(node);
  }

  #isMember(node: string): boolean {
    return this.#options.members().includes(node);
  }
}

function settled(): true {
  return true;
}

function silent(node: string): RoomError {
  return new RoomError('MEMBER_SILENT', `${node} does not answer`);
}
