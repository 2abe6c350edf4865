import type { Log } from '@bloom/log';
import { inTime, sleep, systemClock, type Clock } from '@bloom/time';
import { RoomError } from '../room-service.js';

/** Time that a call waits for an answer before the member is pinged. */
const PATIENCE_MS = 100;
/** A member that sends nothing at all for this long after a ping is silent. */
const PING_TIMEOUT_MS = 1_000;
/** Interval between pings of a silent member, whose link may also reject them immediately. */
const PING_INTERVAL_MS = 200;

export interface SilentMembersOptions {
  /** Members with a link, without this node. */
  members: () => readonly string[];
  /** Pings a member. Rejects when it does not answer within `timeoutMs`. */
  ping: (node: string, timeoutMs: number) => Promise<unknown>;
  /** Returns the bytes received from a member so far, or undefined without a link. */
  received: (node: string) => number | undefined;
  log: Log;
  clock?: Clock;
}

/**
 * Tracks the members that do not answer although their link is up: frozen, or cut off but not dropped yet. All calls of
 * this node share it, so only the first call to such a member has to wait (1.1 s).
 */
export class SilentMembers {
  readonly #options: SilentMembersOptions;
  readonly #clock: Clock;
  readonly #silent = new Set<string>();
  /** Pings in flight; each resolves with whether the member is alive. */
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
   * Returns the outcome of a call to a member. Stops waiting when the member is silent or becomes silent; a member that
   * is merely slow keeps the call's own time limit.
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
   * Returns the outcome of a call whose time limit every living member meets. Marks the member as silent when the call
   * fails and nothing else has arrived from it.
   */
  async expect<T>(node: string, call: Promise<T>): Promise<T> {
    if (await this.#isQuiet(node, call)) this.#missed(node);
    return call;
  }

  /**
   * Returns true when the call fails and nothing has arrived from the member since. On a slow link the answer waits
   * behind data that the member was already sending.
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
