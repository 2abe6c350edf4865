import { Atom, atom, atomMap, isAtom, mapGet, type Term, Tuple, tuple } from '@bloom/etf';
import type { LinkState, NodeKind } from './link-state.js';
import { isLower } from '../handshake/names.js';

// Membership among nodes of ours, without sockets or clock: what happens goes in, what to do comes out. Every member
// knows every other; names are learned from configuration, discovery and other members.

/** Registered name the messages go to. Erlang drops messages to names it does not know, so it may be sent to anybody. */
export const MESH_NAME = 'bloom_mesh';

const VERSION = 1;
/** Names in one message. */
const MAX_PEERS = 1_024;
/** Nodes that are remembered. */
const MAX_KNOWN = 10_000;
/** A node that has not said hello by then is a foreign one: Erlang, or a C node. */
const HELLO_WITHIN_MS = 2_000;
/** The node with the greater name leaves the first attempt to the other one. */
const YIELD_MS = 500;
const MAX_DIALS = 16;
const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 15_000;
const MAX_SEED_RETRY_MS = 5_000;
const GIVE_UP_MS = 10 * 60_000;
const GOSSIP_MS = 10_000;
/** New members are gathered that long before the others are told. */
const ANNOUNCE_MS = 10;

export type MeshAction =
  | { readonly do: 'dial'; readonly node: string }
  | { readonly do: 'send'; readonly node: string; readonly message: Term }
  /** From here on the node counts as what `kind` says. */
  | {
      readonly do: 'up';
      readonly node: string;
      readonly kind: NodeKind;
      readonly creation: number;
      readonly dialled: boolean;
    }
  | { readonly do: 'down'; readonly node: string; readonly kind: NodeKind; readonly reason: string };

export interface MeshOptions {
  readonly self: string;
  /** Whether this node is a tool: connected, but no member. */
  readonly tool: boolean;
  /** Whether a name that a remote told us may be dialled: its syntax, its kind and the allow-list. */
  readonly acceptable: (node: string) => boolean;
  readonly random: () => number;
}

/** What is known of one node, and what is planned. */
export type LinkPlan = Omit<LinkState, 'cutForMs' | 'traffic'>;

interface Known {
  readonly node: string;
  seed: boolean;
  /** When to dial next; undefined: not planned. */
  dialAt: number | undefined;
  dialling: boolean;
  /** Failed attempts in a row. */
  failures: number;
  /** Since when it has been missing, for giving up. */
  missingSince: number;
  connection:
    | { kind: NodeKind | undefined; readonly since: number; readonly creation: number; readonly dialled: boolean }
    | undefined;
  /** Whether it said that it leaves. */
  leaving: boolean;
  /** Of the last attempt, or why the last connection ended. */
  failure: { readonly at: number; readonly reason: string } | undefined;
}

export class Mesh {
  readonly #options: MeshOptions;
  readonly #known = new Map<string, Known>();
  #gossipAt: number | undefined;
  /** New members that others have not been told of, by whom to tell. */
  readonly #news = new Map<string, string[]>();
  #newsAt: number | undefined;
  #dials = 0;

  constructor(options: MeshOptions) {
    this.#options = options;
  }

  /** Names of the members that are connected, without this node. */
  members(): string[] {
    return [...this.#known.values()].filter((k) => k.connection?.kind === 'member').map((k) => k.node);
  }

  kindOf(node: string): NodeKind | undefined {
    return this.#known.get(node)?.connection?.kind;
  }

  /** Names of the configuration: dialled at once and retried for ever. */
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
   * Names to try that are not configured, such as those of DNS. Whoever names them again wants them tried again, however
   * often they have failed.
   */
  learn(nodes: readonly string[], now: number): MeshAction[] {
    for (const node of nodes.slice(0, MAX_PEERS)) {
      this.#hearOf(node, now);
      const known = this.#known.get(node);
      if (known?.dialAt !== undefined && known.failures > 0)
        known.dialAt = Math.min(known.dialAt, now + this.#turn(node));
    }
    return this.poll(now);
  }

  /**
   * There is a connection. `mayBeOurs` false: it lacks what every node of ours has, so it is foreign and gets no hello;
   * a C node in a call takes any message for its answer.
   */
  connected(node: string, creation: number, dialled: boolean, mayBeOurs: boolean, now: number): MeshAction[] {
    const known = this.#remember(node, now, true) as Known;
    this.#dialled(known);
    known.connection = { kind: undefined, since: now, creation, dialled };
    known.dialAt = undefined;
    known.failures = 0;
    known.leaving = false;
    const first: MeshAction = mayBeOurs ? { do: 'send', node, message: this.#hello() } : this.#up(known, 'foreign');
    return [first, ...this.poll(now)];
  }

  lost(node: string, reason: string, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known?.connection === undefined) return [];
    const { kind } = known.connection;
    known.connection = undefined;
    known.missingSince = now;
    known.failure = { at: now, reason };
    const why = known.leaving && reason === 'connection_closed' ? 'leave' : reason;
    const actions: MeshAction[] = kind === undefined ? [] : [{ do: 'down', node, kind, reason: why }];
    const retry = known.seed || (kind === 'member' && why !== 'leave' && why !== 'disconnect');
    if (retry && why !== 'replaced') known.dialAt = now + this.#delay(known);
    else if (!known.seed) this.#known.delete(node);
    return [...actions, ...this.poll(now)];
  }

  /** An attempt asked for by `dial` failed; `fast` false: it will not be better soon (wrong cookie, not allowed). */
  failed(node: string, fast: boolean, now: number, reason = ''): MeshAction[] {
    const known = this.#known.get(node);
    if (known === undefined) return [];
    this.#dialled(known);
    known.failure = { at: now, reason };
    if (known.connection !== undefined) return this.poll(now);
    known.failures = fast ? known.failures + 1 : Math.max(known.failures + 1, 8);
    if (!known.seed && now - known.missingSince > GIVE_UP_MS) this.#known.delete(node);
    else known.dialAt = now + this.#delay(known);
    return this.poll(now);
  }

  /** What kept a node away is over: if it is wanted it is dialled now. */
  retry(node: string, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known?.dialAt !== undefined) {
      known.dialAt = now;
      known.failures = 0;
    }
    return this.poll(now);
  }

  /** Every node that is known, and those. */
  links(others: readonly string[], now: number): LinkPlan[] {
    const strangers = others.filter((node) => !this.#known.has(node)).map((node) => strangerPlan(node));
    return [...Array.from(this.#known.values(), (known) => planOf(known, now)), ...strangers];
  }

  /** An attempt asked for by `dial` ended with a connection, whoever made it. */
  dialDone(node: string, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known !== undefined) this.#dialled(known);
    return this.poll(now);
  }

  /** A message to `bloom_mesh` from that node. What is none of ours has no effect. */
  message(node: string, message: Term, now: number): MeshAction[] {
    const known = this.#known.get(node);
    if (known?.connection === undefined || !(message instanceof Tuple)) return [];
    const [tag, version, name] = message.elements;
    // The link has proved the name; a message in another one is of no use.
    if (version !== VERSION || (tag instanceof Atom && tag.name !== 'peers' && nodeName(name) !== node)) return [];
    if (isAtom(tag, 'hello')) return this.#heardHello(known, message.elements[3], message.elements[4], now);
    if (isAtom(tag, 'peers')) return this.#heardPeers(name, now);
    if (isAtom(tag, 'bye')) known.leaving = true;
    return [];
  }

  /** To be sent to everybody before an orderly stop. */
  bye(): Term {
    return tuple(atom('bye'), VERSION, atom(this.#options.self));
  }

  /** When `poll` has something to do next; undefined: only after another event. */
  nextDue(): number | undefined {
    let next = this.#gossipAt;
    if (this.#newsAt !== undefined && (next === undefined || this.#newsAt < next)) next = this.#newsAt;
    for (const known of this.#known.values()) {
      const { connection } = known;
      const hello =
        connection !== undefined && connection.kind === undefined ? connection.since + HELLO_WITHIN_MS : undefined;
      // Dials beyond the limit start when another one ends, not by time.
      const dial = known.dialling || this.#dials >= MAX_DIALS ? undefined : known.dialAt;
      for (const at of [hello, dial]) if (at !== undefined && (next === undefined || at < next)) next = at;
    }
    return next;
  }

  poll(now: number): MeshAction[] {
    const actions: MeshAction[] = [];
    for (const known of this.#known.values()) {
      const { connection } = known;
      if (connection !== undefined) {
        if (connection.kind === undefined && now >= connection.since + HELLO_WITHIN_MS)
          actions.push(this.#up(known, 'foreign'));
      } else if (known.dialAt !== undefined && known.dialAt <= now && !known.dialling && this.#dials < MAX_DIALS) {
        known.dialling = true;
        known.dialAt = undefined;
        this.#dials += 1;
        actions.push({ do: 'dial', node: known.node });
      }
    }
    return [...actions, ...this.#announce(now), ...this.#gossip(now)];
  }

  #hello(): Term {
    const caps = atomMap(this.#options.tool ? { hidden: true } : {});
    return tuple(atom('hello'), VERSION, atom(this.#options.self), caps, this.#peerNames());
  }

  /** At most 1,024 of the members, another part each time when there are more. */
  #peerNames(): Term[] {
    if (this.#options.tool) return [];
    const members = this.members();
    const start = members.length > MAX_PEERS ? Math.floor(this.#options.random() * members.length) : 0;
    return [...members.slice(start), ...members.slice(0, start)].slice(0, MAX_PEERS).map((node) => atom(node));
  }

  #heardHello(known: Known, caps: Term, peers: Term, now: number): MeshAction[] {
    const { connection } = known;
    const actions: MeshAction[] = [];
    if (connection !== undefined && (connection.kind === undefined || connection.kind === 'foreign')) {
      const kind = mapGet(caps, atom('hidden')) === true ? 'tool' : 'member';
      if (connection.kind === 'foreign')
        actions.push({ do: 'down', node: known.node, kind: 'foreign', reason: 'replaced' });
      actions.push(this.#up(known, kind));
      if (kind === 'member' && !this.#options.tool) this.#announceLater(known.node, nodeNames(peers), now);
    }
    return this.#options.tool ? actions : [...actions, ...this.#heardPeers(peers, now)];
  }

  #heardPeers(peers: Term, now: number): MeshAction[] {
    for (const node of nodeNames(peers)) this.#hearOf(node, now);
    return this.poll(now);
  }

  /**
   * Tells the other members of a new one, but those that it knows already. It learned of them with our hello. When many
   * join at once their names travel together.
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
        names.slice(0, MAX_PEERS).map((name) => atom(name)),
      );
      actions.push({ do: 'send', node, message });
    }
    this.#news.clear();
    return actions;
  }

  #up(known: Known, kind: NodeKind): MeshAction {
    const connection = known.connection as NonNullable<Known['connection']>;
    connection.kind = kind;
    return { do: 'up', node: known.node, kind, creation: connection.creation, dialled: connection.dialled };
  }

  #hearOf(node: string, now: number): void {
    const { self, acceptable } = this.#options;
    if (node === self || !acceptable(node)) return;
    const before = this.#known.get(node);
    if (before !== undefined && (before.connection !== undefined || before.dialling || before.dialAt !== undefined))
      return;
    const known = this.#remember(node, now);
    if (known !== undefined) known.dialAt = now + this.#turn(node);
  }

  /** The lower name dials at once, so that attempts do not meet. */
  #turn(node: string): number {
    return isLower(this.#options.self, node) ? 0 : YIELD_MS;
  }

  #remember(node: string, now: number, always = false): Known | undefined {
    const before = this.#known.get(node);
    if (before !== undefined) return before;
    if (this.#known.size >= MAX_KNOWN && !always) return undefined;
    const known: Known = {
      node,
      seed: false,
      dialAt: undefined,
      dialling: false,
      failures: 0,
      missingSince: now,
      connection: undefined,
      leaving: false,
      failure: undefined,
    };
    this.#known.set(node, known);
    return known;
  }

  #dialled(known: Known): void {
    if (!known.dialling) return;
    known.dialling = false;
    this.#dials -= 1;
  }

  /** Doubles with each failure, within 80 and 120 %; the greater name starts later, so that attempts do not meet. */
  #delay(known: Known): number {
    const longest = known.seed ? MAX_SEED_RETRY_MS : MAX_RETRY_MS;
    const doubled = Math.min(FIRST_RETRY_MS * 2 ** Math.min(known.failures, 16), longest);
    const yielded = known.failures === 0 && isLower(known.node, this.#options.self) ? YIELD_MS : 0;
    return yielded + Math.min(doubled * (0.8 + 0.4 * this.#options.random()), longest);
  }

  /** Every 10 s somebody gets a hello: names whose announcement was lost travel with it. */
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
    return [{ do: 'send', node, message: this.#hello() }];
  }
}

function nodeName(term: Term): string | undefined {
  return term instanceof Atom ? term.name : undefined;
}

function nodeNames(term: Term): string[] {
  if (!Array.isArray(term)) return [];
  return (term as Term[])
    .slice(0, MAX_PEERS)
    .map(nodeName)
    .filter((name) => name !== undefined);
}

function planOf(known: Known, now: number): LinkPlan {
  const { node, seed, connection, dialAt, dialling, failures, failure } = known;
  return {
    node,
    seed,
    state: connection !== undefined ? 'up' : dialling ? 'dialling' : dialAt === undefined ? 'down' : 'waiting',
    kind: connection?.kind ?? null,
    sinceMs: now - (connection?.since ?? known.missingSince),
    dialled: connection?.dialled ?? null,
    attempts: failures,
    nextAttemptInMs: dialAt === undefined ? null : Math.max(0, dialAt - now),
    lastFailure: failure === undefined ? null : { agoMs: now - failure.at, reason: failure.reason },
  };
}

/** A node that is not known, and kept away all the same. */
function strangerPlan(node: string): LinkPlan {
  const nothing = { kind: null, dialled: null, nextAttemptInMs: null, lastFailure: null };
  return { node, seed: false, state: 'down', sinceMs: 0, attempts: 0, ...nothing };
}
