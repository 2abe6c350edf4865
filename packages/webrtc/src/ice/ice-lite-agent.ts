import type { TransportAddress } from '../stun/address.js';
import { Attribute, MessageClass, Method, StunError } from '../stun/constants.js';
import type { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';

/** Credentials of one offer/answer cycle. The `local` ones are ours, made by the control plane. */
export interface IceGeneration {
  generation: number;
  localUfrag: string;
  localPwd: string;
  remoteUfrag: string;
  remotePwd: string;
}

/** Local credentials of an earlier cycle. */
interface QuotedCredentials {
  ufrag: string;
  pwd: string;
}

/**
 * A cycle and the older credentials of ours that its client quotes, if any. Chromium may begin the checks of a restart before
 * the answer arrives: with our ufrag of the previous cycle and its own new one. It keeps such a pair when the answer comes,
 * because the candidate in it has the same address, and never checks with our new ufrag.
 */
interface AcceptedGeneration extends IceGeneration {
  quoted?: QuotedCredentials;
}

/** Cycle of a check, and the password it is sealed with. */
interface Match {
  generation: AcceptedGeneration;
  pwd: string;
  /** Set when the check quotes older credentials of ours than those of its generation. */
  quoted?: QuotedCredentials;
}

/** Notified of every local user fragment that becomes valid or invalid, to route checks by it. */
export interface UfragRegistry {
  added(ufrag: string): void;
  removed(ufrag: string): void;
}

export interface CheckOutcome {
  /** Reply for the path the check came from; absent for a stranger. */
  reply?: Buffer;
  /** True for an authentic check: its path may carry media. */
  accepted: boolean;
  /** Set when the send path moves to the check's path. */
  nominated?: { generation: number; first: boolean };
}

interface IceLiteAgentOptions {
  registry: UfragRegistry;
  /** Time without an authentic check after which the client counts as silent (RFC 7675 section 5.1). */
  consentTimeoutMs?: number;
}

export const CONSENT_TIMEOUT_MS = 30_000;
/** Cycles that were answered but never nominated, kept beside the nominated one. */
const PENDING_GENERATIONS = 2;
const STRANGER: CheckOutcome = { accepted: false };

/**
 * The lite, controlled side of ICE (RFC 8445 sections 2.5 and 7.3) for one transport. It answers checks and remembers
 * which path was nominated last; it never sends a check of its own. `P` is the type of a path.
 */
export class IceLiteAgent<P> {
  readonly #registry: UfragRegistry;
  readonly #consentTimeoutMs: number;
  #generations: AcceptedGeneration[] = [];
  #nominated: { generation: number; path: P } | undefined;
  #state: 'new' | 'connected' | 'silent' = 'new';
  #lastSeenMs: number | undefined;
  /** Highest generation whose path was lost while nominated: it is not reported as new again. */
  #lostGeneration = 0;
  bindingRequestsReceived = 0;
  bindingResponsesSent = 0;

  constructor(options: IceLiteAgentOptions) {
    this.#registry = options.registry;
    this.#consentTimeoutMs = options.consentTimeoutMs ?? CONSENT_TIMEOUT_MS;
  }

  get state(): 'new' | 'connected' | 'silent' {
    return this.#state;
  }

  /** Generation of the nominated pair, 0 before the first. */
  get generation(): number {
    return this.#nominated?.generation ?? 0;
  }

  get path(): P | undefined {
    return this.#nominated?.path;
  }

  /**
   * Accepts checks for new credentials. The nominated generation stays valid until the new one is nominated. Returns true for
   * the credentials already nominated: the client did not restart, so the cycle needs no new nomination.
   */
  accept(next: IceGeneration, nowMs: number): boolean {
    this.#lastSeenMs ??= nowMs;
    const same = this.#generations.find((g) => g.localUfrag === next.localUfrag && g.remoteUfrag === next.remoteUfrag);
    const unchanged = same !== undefined && same.generation === this.#nominated?.generation;
    if (unchanged && this.#nominated !== undefined) this.#nominated.generation = next.generation;

    const known = this.#ufrags();
    const kept = this.#generations.filter((g) => g !== same);
    const current = kept.filter((g) => g.generation === this.generation);
    const pending = kept.filter((g) => g.generation !== this.generation).slice(1 - PENDING_GENERATIONS);
    // A client that keeps its old pair keeps quoting the credentials of that pair.
    this.#generations = [
      ...current,
      ...pending,
      same?.quoted === undefined ? { ...next } : { ...next, quoted: same.quoted },
    ];
    this.#announce(known);
    return unchanged;
  }

  /** Answers one message that claims to be a connectivity check. `mapped` is the source it came from. */
  handleCheck(message: StunMessage, path: P, mapped: TransportAddress, nowMs: number): CheckOutcome {
    if (message.method !== Method.binding || message.messageClass !== MessageClass.request) return STRANGER;
    const match = this.#match(message.text(Attribute.username));
    if (match === undefined || !message.fingerprintHolds || !message.verifyIntegrity(match.pwd)) return STRANGER;
    const { generation, pwd, quoted } = match;
    if (quoted !== undefined) generation.quoted = quoted;
    this.bindingRequestsReceived++;
    this.bindingResponsesSent++;

    const unknown = message.unknownRequired;
    if (unknown.length > 0) {
      const reply = this.#reply(message, MessageClass.error)
        .error(StunError.unknownAttribute)
        .unknownAttributes(unknown)
        .integrity(pwd)
        .fingerprint()
        .finish();
      return { accepted: false, reply };
    }
    // A lite agent is always controlled, so it can never give way (RFC 8445 section 7.3.1.1).
    if (message.has(Attribute.iceControlled)) {
      const reply = this.#reply(message, MessageClass.error)
        .error(StunError.roleConflict)
        .integrity(pwd)
        .fingerprint()
        .finish();
      return { accepted: false, reply };
    }

    this.#lastSeenMs = nowMs;
    if (this.#state === 'silent' && this.#nominated !== undefined) this.#state = 'connected';
    const reply = this.#reply(message, MessageClass.success)
      .xorAddress(Attribute.xorMappedAddress, mapped)
      .integrity(pwd)
      .fingerprint()
      .finish();
    if (!message.has(Attribute.useCandidate) || generation.generation < this.generation) {
      return { accepted: true, reply };
    }
    return { accepted: true, reply, nominated: this.#nominate(generation, path) };
  }

  /** Returns true once when the client has fallen silent. */
  sweep(nowMs: number): boolean {
    if (this.#state === 'silent' || this.#lastSeenMs === undefined) return false;
    if (nowMs - this.#lastSeenMs < this.#consentTimeoutMs) return false;
    this.#state = 'silent';
    return true;
  }

  /** Forgets a path that no longer exists; nothing is sent until the next nomination. */
  forget(path: P): void {
    if (this.#nominated?.path === path) {
      this.#lostGeneration = Math.max(this.#lostGeneration, this.#nominated.generation);
      this.#nominated = undefined;
    }
  }

  close(): void {
    const known = this.#ufrags();
    this.#generations = [];
    this.#nominated = undefined;
    this.#announce(known);
  }

  #nominate(generation: IceGeneration, path: P): { generation: number; first: boolean } {
    const first = generation.generation > Math.max(this.generation, this.#lostGeneration);
    this.#nominated = { generation: generation.generation, path };
    this.#state = 'connected';
    const known = this.#ufrags();
    this.#generations = this.#generations.filter((g) => g.generation >= generation.generation);
    this.#announce(known);
    return { generation: generation.generation, first };
  }

  /**
   * USERNAME is `<our ufrag>:<their ufrag>` (RFC 8445 section 7.2.2). Ours says which password seals the check; theirs,
   * when it is newer, that the client has restarted.
   */
  #match(username: string | undefined): Match | undefined {
    if (username === undefined) return undefined;
    const colon = username.indexOf(':');
    if (colon < 0) return undefined;
    const local = username.slice(0, colon);
    const remote = username.slice(colon + 1);
    const keyed = this.#generations.filter((g) => g.localUfrag === local);
    const own = keyed.find((g) => g.remoteUfrag === remote) ?? keyed.at(-1);
    const quoting = this.#generations.findLast((g) => g.quoted?.ufrag === local);
    const key = own ?? quoting;
    if (key === undefined) return undefined;
    const pwd = own === undefined ? (quoting?.quoted?.pwd ?? '') : own.localPwd;
    const restarted = this.#generations.findLast((g) => g.remoteUfrag === remote);
    if (restarted === undefined || restarted.generation <= key.generation) return { generation: key, pwd };
    return { generation: restarted, pwd, quoted: { ufrag: local, pwd } };
  }

  #reply(request: StunMessage, messageClass: MessageClass): StunWriter {
    return new StunWriter(Method.binding, messageClass, request.transactionId);
  }

  #ufrags(): Set<string> {
    return new Set(
      this.#generations.flatMap(({ localUfrag, quoted }) =>
        quoted === undefined ? localUfrag : [localUfrag, quoted.ufrag],
      ),
    );
  }

  #announce(before: ReadonlySet<string>): void {
    const after = this.#ufrags();
    for (const ufrag of before) if (!after.has(ufrag)) this.#registry.removed(ufrag);
    for (const ufrag of after) if (!before.has(ufrag)) this.#registry.added(ufrag);
  }
}
