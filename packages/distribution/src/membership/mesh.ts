import { Atom, atom, atomMap, isAtom, mapGet, type Term, Tuple, tuple } from '@bloom/etf';
import {
  type Announcement,
  announcementOf,
  capabilitiesOf,
  commonProtocol,
  noCommonProtocol,
  type Spoken,
} from './announcement.js';
import { type Known, type LinkPlan, newlyKnown, planOf, unknownPlan } from './known-node.js';
import type { NodeKind } from './link-state.js';
import { isLower } from '../handshake/names.js';

// Membership among our own nodes, without sockets or clock: events in, actions out. Every member knows every other one.
// Names are learned from the configuration, discovery and other members.

/**
 * Registered name that receives the messages. Erlang drops messages to unknown names, so they may be sent to any node.
 */
export const MESH_NAME = 'bloom_mesh';

const VERSION = 1;
/** Maximum number of names in one message. */
const MAX_NAMES = 1_024;
/** Maximum number of remembered nodes. */
const MAX_KNOWN = 10_000;
/** A node that sends no hello within this time is foreign: an Erlang or a C node. */
const HELLO_WITHIN_MS = 2_000;
/** Head start of the node with the lower name. */
const YIELD_MS = 500;
/** Maximum number of nodes dialled at the same time. Dead addresses of a DNS name must not keep living ones waiting. */
const MAX_DIALS = 128;
const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 15_000;
const MAX_SEED_RETRY_MS = 5_000;
const GIVE_UP_MS = 10 * 60_000;
const GOSSIP_MS = 10_000;
/** A node counts as joining for at most this long after its start. */
const JOINING_MS = 60_000;
/** How long new members are gathered before they are announced. */
const ANNOUNCE_MS = 10;

export type MeshAction =
  | { readonly do: 'dial'; readonly node: string }
  | { readonly do: 'send'; readonly node: string; readonly message: Term }
  /** From now on the node counts as a node of this kind. */
  | {
      readonly do: 'up';
      readonly node: string;
      readonly kind: NodeKind;
      readonly creation: number;
      readonly dialled: boolean;
    }
  /**
   * The node shares no protocol version with this one and is not a member. `joins`: this node is the one that has to
   * end.
   */
  | { readonly do: 'refuse'; readonly node: string; readonly why: string; readonly joins: boolean }
  | { readonly do: 'down'; readonly node: string; readonly kind: NodeKind; readonly reason: string };

export interface MeshOptions {
  readonly self: string;
  /** True for a tool, which is connected but not a member. */
  readonly tool: boolean;
  /** True when the syntax and kind of a name announced by a member allow dialling it. */
  readonly acceptable: (node: string) => boolean;
  readonly random: () => number;
  /** What this node announces as a member. Without it, the node speaks protocol 1 and accepts every member. */
  readonly spoken?: (Spoken & { readonly startedAt: number }) | undefined;
}

interface DialFailure {
  readonly fast: boolean;
  readonly reason: string;
  /** Name of the node that answered in place of the dialled one. */
  readonly calledItself?: string | undefined;
}

export interface NewConnection {
  readonly creation: number;
  /** True when we dialled. */
  readonly dialled: boolean;
  /**
   * False if the node lacks a flag of ours or was given its name. It is foreign then: its hellos are ignored, and it
   * gets none, because a C node that waits for an answer takes any message for it.
   */
  readonly mayBeOurs: boolean;
}

export class Mesh {
  readonly #options: MeshOptions;
  readonly #known = new Map<string, Known>();
  #gossipAt: number | undefined;
  /** New members to announce, by recipient. */
  readonly #news = new Map<string, string[]>();
  #newsAt: number | undefined;
  #dials = 0;
  /** True once this node has had a member. */
  #joined = false;

  constructor(options: MeshOptions) {
    this.#options = options;
  }

  /** Returns the connected members, without this node. */
  members(): string[] {
    return [...this.#known.values()].filter((k) => k.connection?.kind === 'member').map((k) => k.node);
  }

  kindOf(node: string): NodeKind | undefined {
    return this.#known.get(node)?.connection?.kind;
  }

  /** Returns what a connected member has announced; undefined for others. */
  announced(node: string): Announcement | undefined {
    return this.#known.get(node)?.connection?.announced;
  }

  /** Adds configured names, which are dialled immediately and retried forever. */
  seed(nodes: readonly string[], now: number): MeshAction[] {
    for (const node of nodes) {
      if (node === this.#options.self) continue;
      const known = this.#remember(node, now);
      if (known === undefined) continue;
      known.seed = true;
      if (known.connection === undefined && !known.dialling && known.dialAt === undefined) known.dialAt = now;
    }
    return this.poll(now);
  }

  /**
   * Adds names that are not configured, such as those found in DNS. A name that is learned again is tried again,
   * however often it has failed.
   */
  learn(nodes: readonly string[], now: number): MeshAction[] {
    for (const node of nodes.slice(0, MAX_NAMES)) {
      this.#learnName(node, now);
      const known = this.#known.get(node);
      if (known?.dialAt !== undefined && known.failures > 0 && !this.#isMemberByAlias(known))
        known.dialAt = Math.min(known.dialAt, now + this.#turn(node));
    }
    return this.poll(now);
  }

  connected(node: string, { creation, dialled, mayBeOurs }: NewConnection, now: number): MeshAction[] {
    const known = this.#remember(node, now, true) as Known;
    this.#dialled(known);
    known.connection = { kind: undefined, announced: undefined, since: now, creation, dialled, mayBeOurs };
    known.refusal = undefined;
    known.dialAt = undefined;
    known.leaving = false;
    const first: MeshAction = mayBeOurs ? { do: 'send', node, message: this.#hello(now) } : this.#up(known, 'foreign');
    return [first, ...this.poll(now)];
  }

  lost(node: string, reason: string, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known?.connection === undefined) return [];
    const { kind } = known.connection;
    known.connection = undefined;
    // A connection that ends before the node has identified itself counts as a failed attempt.
    if (kind === undefined) known.failures += 1;
    else known.missingSince = now;
    known.failure = { at: now, reason: known.refusal ?? reason };
    const why = known.leaving && reason === 'connection_closed' ? 'leave' : reason;
    const actions: MeshAction[] = kind === undefined ? [] : [{ do: 'down', node, kind, reason: why }];
    const isMeant = why === 'leave' || why === 'disconnect';
    if (isMeant) known.member = false;
    if (isMeant || kind === 'tool') known.wanted = false;
    const isGivenUp = kind === undefined && now - known.missingSince > GIVE_UP_MS;
    if (known.seed || (known.wanted && !isGivenUp)) known.dialAt = now + this.#delay(known);
    else this.#known.delete(node);
    return [...actions, ...this.poll(now)];
  }

  /** Records that a `dial` failed. With `fast` false a quick retry would not help (wrong cookie, not allowed). */
  failed(node: string, { fast, reason, calledItself }: DialFailure, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known === undefined) return [];
    this.#dialled(known);
    known.failure = { at: now, reason };
    known.alias = calledItself;
    if (known.connection !== undefined) return this.poll(now);
    known.failures = fast ? known.failures + 1 : Math.max(known.failures + 1, 8);
    if (!known.seed && this.#isMemberByAlias(known)) known.dialAt = undefined;
    else if (!known.seed && now - known.missingSince > GIVE_UP_MS) this.#known.delete(node);
    else known.dialAt = now + this.#delay(known);
    return this.poll(now);
  }

  /** Dials a wanted node now that it is no longer cut off. */
  retry(node: string, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known?.dialAt !== undefined) {
      known.dialAt = now;
      known.failures = 0;
    }
    return this.poll(now);
  }

  /** Returns the state of every known node and of `others`. */
  links(others: readonly string[], now: number): LinkPlan[] {
    const unknown = others.filter((node) => !this.#known.has(node)).map((node) => unknownPlan(node));
    return [...Array.from(this.#known.values(), (known) => planOf(known, now)), ...unknown];
  }

  /** Records that a `dial` ended with a connection, whichever side made it. */
  dialDone(node: string, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known !== undefined) this.#dialled(known);
    return this.poll(now);
  }

  /** Handles a message to `bloom_mesh` from the node. Messages of other programs have no effect. */
  message(node: string, message: Term, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known?.connection?.mayBeOurs !== true || !(message instanceof Tuple)) return [];
    const [tag, version, name] = message.elements;
    // The link has proved the name, so messages in another name are ignored.
    if (version !== VERSION || (tag instanceof Atom && tag.name !== 'peers' && nodeName(name) !== node)) return [];
    if (isAtom(tag, 'hello')) return this.#onHello(known, message.elements, now);
    if (isAtom(tag, 'peers')) return this.#onNames(name, now);
    if (isAtom(tag, 'bye')) known.leaving = true;
    return [];
  }

  /** Returns the message sent to all connected nodes before an orderly stop. */
  bye(): Term {
    return tuple(atom('bye'), VERSION, atom(this.#options.self));
  }

  /** Returns when `poll` next has something to do; undefined: not before another event. */
  nextDue(): number | undefined {
    let next = this.#gossipAt;
    if (this.#newsAt !== undefined && (next === undefined || this.#newsAt < next)) next = this.#newsAt;
    for (const known of this.#known.values()) {
      const { connection } = known;
      const hello =
        connection !== undefined && connection.kind === undefined ? connection.since + HELLO_WITHIN_MS : undefined;
      // Dials beyond the limit start when another one ends, not at a set time.
      const dial = known.dialling || this.#dials >= MAX_DIALS ? undefined : known.dialAt;
      for (const at of [hello, dial]) if (at !== undefined && (next === undefined || at < next)) next = at;
    }
    return next;
  }

  poll(now: number): MeshAction[] {
    const actions: MeshAction[] = [];
    const due: { readonly known: Known; readonly at: number }[] = [];
    for (const known of this.#known.values()) {
      const { connection, dialAt: at } = known;
      if (connection !== undefined) {
        if (connection.kind === undefined && now >= connection.since + HELLO_WITHIN_MS)
          actions.push(this.#up(known, 'foreign'));
      } else if (at !== undefined && at <= now && !known.dialling) due.push({ known, at });
    }
    // The longest overdue comes first. Otherwise 32 hosts that are slow to fail would take turns and no other be
    // dialled.
    for (const { known } of due.toSorted((a, b) => a.at - b.at).slice(0, MAX_DIALS - this.#dials)) {
      known.dialling = true;
      known.dialAt = undefined;
      this.#dials += 1;
      actions.push({ do: 'dial', node: known.node });
    }
    return [...actions, ...this.#announce(now), ...this.#gossip(now)];
  }

  #hello(now: number): Term {
    const { tool, spoken } = this.#options;
    const announced = spoken === undefined ? {} : capabilitiesOf(spoken, now - spoken.startedAt);
    const caps = atomMap(tool ? { hidden: true } : announced);
    return tuple(atom('hello'), VERSION, atom(this.#options.self), caps, this.#memberNames());
  }

  /** Returns at most 1,024 of the members, a different part each time when there are more. */
  #memberNames(): Term[] {
    if (this.#options.tool) return [];
    const members = this.members();
    const start = members.length > MAX_NAMES ? Math.floor(this.#options.random() * members.length) : 0;
    return [...members.slice(start), ...members.slice(0, start)].slice(0, MAX_NAMES).map((node) => atom(node));
  }

  #onHello(known: Known, [, , , caps, names]: readonly Term[], now: number): MeshAction[] {
    const { connection } = known;
    const actions: MeshAction[] = [];
    if (connection !== undefined && (connection.kind === undefined || connection.kind === 'foreign')) {
      const kind = mapGet(caps, atom('hidden')) === true ? 'tool' : 'member';
      if (kind === 'member') {
        const announced = announcementOf(caps);
        const refusal = this.#refusal(known, announced, now);
        if (refusal !== undefined) return [refusal];
        connection.announced = announced;
      }
      if (connection.kind === 'foreign')
        actions.push({ do: 'down', node: known.node, kind: 'foreign', reason: 'replaced' });
      actions.push(this.#up(known, kind));
      if (kind === 'member' && !this.#options.tool) this.#announceLater(known.node, nodeNames(names), now);
    }
    return this.#options.tool ? actions : [...actions, ...this.#onNames(names, now)];
  }

  /** Returns what to do with a member that shares no protocol version; undefined for all others. */
  #refusal(known: Known, announced: Announcement | undefined, now: number): MeshAction | undefined {
    const { self, tool, spoken } = this.#options;
    if (tool || spoken === undefined) return undefined;
    if (announced !== undefined && commonProtocol(spoken.protocols, announced.protocols) !== undefined)
      return undefined;
    const { node } = known;
    known.refusal = noCommonProtocol(node, spoken, announced);
    const age = now - spoken.startedAt;
    // Never end a node that is already serving: a single message of a stranger would end its rooms.
    const isNew = !this.#joined && age < JOINING_MS;
    const isOlder =
      announced !== undefined && (announced.upMs > age || (announced.upMs === age && isLower(node, self)));
    return { do: 'refuse', node, why: known.refusal, joins: isNew && isOlder };
  }

  #onNames(names: Term, now: number): MeshAction[] {
    for (const node of nodeNames(names)) {
      const known = this.#known.get(node);
      // A member names nodes that have proved their names, so this is no other name of a member: its address led there.
      if (known !== undefined) known.alias = undefined;
      this.#learnName(node, now);
    }
    return this.poll(now);
  }

  /**
   * Plans to announce a new member to the others, except those that it already knows: they have learned of it with our
   * hello. When many join at once, their names travel together.
   */
  #announceLater(node: string, itKnows: readonly string[], now: number): void {
    const others = new Set(this.members());
    others.delete(node);
    for (const known of itKnows) others.delete(known);
    for (const other of others) {
      const names = this.#news.get(other);
      if (names === undefined) this.#news.set(other, [node]);
      else names.push(node);
    }
    if (this.#news.size > 0) this.#newsAt ??= now + ANNOUNCE_MS;
  }

  #announce(now: number): MeshAction[] {
    if (this.#newsAt === undefined || now < this.#newsAt) return [];
    this.#newsAt = undefined;
    const actions: MeshAction[] = [];
    for (const [node, names] of this.#news) {
      if (this.kindOf(node) !== 'member') continue;
      const message = tuple(
        atom('peers'),
        VERSION,
        names.slice(0, MAX_NAMES).map((name) => atom(name)),
      );
      actions.push({ do: 'send', node, message });
    }
    this.#news.clear();
    return actions;
  }

  #up(known: Known, kind: NodeKind): MeshAction {
    const connection = known.connection as NonNullable<Known['connection']>;
    connection.kind = kind;
    known.failures = 0;
    known.member = kind === 'member';
    if (known.member) {
      known.wanted = true;
      this.#joined = true;
    }
    return { do: 'up', node: known.node, kind, creation: connection.creation, dialled: connection.dialled };
  }

  #learnName(node: string, now: number): void {
    const { self, acceptable } = this.#options;
    if (node === self || !acceptable(node)) return;
    const before = this.#known.get(node);
    if (before !== undefined && (before.connection !== undefined || before.dialling || before.dialAt !== undefined))
      return;
    if (before !== undefined && this.#isMemberByAlias(before)) return;
    const known = this.#remember(node, now);
    if (known === undefined) return;
    known.wanted = true;
    known.dialAt = now + this.#turn(node);
  }

  /** True for another name of a member, which need not be dialled while it is one. */
  #isMemberByAlias({ alias }: Known): boolean {
    return alias !== undefined && this.kindOf(alias) === 'member';
  }

  /** Returns the pause before dialling: none for the lower name, so that two attempts do not collide. */
  #turn(node: string): number {
    return isLower(this.#options.self, node) ? 0 : YIELD_MS;
  }

  #remember(node: string, now: number, always = false): Known | undefined {
    const before = this.#known.get(node);
    if (before !== undefined) return before;
    if (this.#known.size >= MAX_KNOWN && !always) return undefined;
    const known = newlyKnown(node, now);
    this.#known.set(node, known);
    return known;
  }

  #dialled(known: Known): void {
    if (!known.dialling) return;
    known.dialling = false;
    this.#dials -= 1;
  }

  /**
   * Returns a pause that doubles with each failure, varies by 20 % and is longer for the greater name to avoid
   * collisions.
   */
  #delay(known: Known): number {
    const longest = known.seed ? MAX_SEED_RETRY_MS : MAX_RETRY_MS;
    const doubled = Math.min(FIRST_RETRY_MS * 2 ** Math.min(known.failures, 16), longest);
    const yielded = known.failures === 0 && isLower(known.node, this.#options.self) ? YIELD_MS : 0;
    return yielded + Math.min(doubled * (0.8 + 0.4 * this.#options.random()), longest);
  }

  /** Sends a hello to one member every 10 s, so that names from lost announcements still arrive. */
  #gossip(now: number): MeshAction[] {
    if (this.#options.tool) return [];
    const members = this.members();
    if (members.length === 0) {
      this.#gossipAt = undefined;
      return [];
    }
    const due = this.#gossipAt;
    if (due !== undefined && now < due) return [];
    this.#gossipAt = now + GOSSIP_MS;
    if (due === undefined) return [];
    const node = members[Math.floor(this.#options.random() * members.length)] as string;
    return [{ do: 'send', node, message: this.#hello(now) }];
  }
}

function nodeName(term: Term): string | undefined {
  return term instanceof Atom ? term.name : undefined;
}

function nodeNames(term: Term): string[] {
  if (!Array.isArray(term)) return [];
  return (term as Term[])
    .slice(0, MAX_NAMES)
    .map(nodeName)
    .filter((name) => name !== undefined);
}
