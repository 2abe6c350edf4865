import { type Atom, atom, EtfError, Pid, type Ref, type Term, type TermWriter } from '@bloom/etf';
import { type Control, type Ending, Operation, write } from './control.js';
import { DistributionError } from '../errors.js';
import type { Link } from './link.js';
import { RefMap } from './ref-map.js';
import type { Monitor, ProcessTable, SpawnAnswer, SpawnRequest, Target, Watched } from '../processes.js';

const NOPROC = atom('noproc');
const NOCONNECTION = atom('noconnection');
const SYSTEM_LIMIT = atom('system_limit');

/** Flags of a spawn reply. */
const LINKED = 1;
const MONITORED = 2;

type Entry =
  /** A remote process monitors a local one. */
  | { readonly kind: 'watched'; readonly local: Pid; readonly target: Target; readonly watcher: Pid; readonly ref: Ref }
  /** A local process monitors a remote one. */
  | { readonly kind: 'watching'; readonly local: Pid; readonly target: Target; readonly ref: Ref }
  | { readonly kind: 'link'; readonly local: Pid; readonly remote: Pid; unlinking: number }
  /** A local process has requested a remote one and has no answer yet. */
  | { readonly kind: 'spawning'; readonly local: Pid; readonly ref: Ref };

type Of<K extends Entry['kind']> = Entry & { readonly kind: K };

export interface SignalOptions {
  readonly link: Link;
  readonly table: ProcessTable;
  /** Our own node. */
  readonly self: { readonly name: string; readonly creation: number };
  /** Maximum number of monitors and links over all connections. */
  readonly maxEntries: number;
  /** Monitors and links that this connection may always have, however many the others have. */
  readonly share: number;
  /** Returns the number of monitors and links over all connections. */
  readonly total: () => number;
  /** Calls into the process table and logs its exceptions. */
  readonly guard: (what: string, run: () => void) => void;
}

/** Monitors, links and spawn requests over one connection. Sends signals when a process or the connection ends. */
export class Signals {
  readonly #options: SignalOptions;
  readonly #watched = new RefMap<Of<'watched'>>();
  readonly #watching = new RefMap<Of<'watching'>>();
  readonly #spawning = new RefMap<Of<'spawning'>>();
  readonly #links = new Map<string, Of<'link'>>();
  /** Entries by the number of the local process. */
  readonly #byLocal = new Map<number, Set<Entry>>();
  #unlinkId = 0;

  constructor(options: SignalOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#watched.size + this.#watching.size + this.#spawning.size + this.#links.size;
  }

  // --- requests of local processes

  monitor(watcher: Pid, target: Target, ref: Ref): void {
    this.#add({ kind: 'watching', local: watcher, target, ref });
    this.#options.link.signal((writer) =>
      write.monitor(writer, Operation.monitorP, { from: watcher, to: target, ref }),
    );
  }

  /** Ends a monitor. Returns false when there was none. */
  demonitor(ref: Ref): boolean {
    const entry = this.#watching.take(ref);
    if (entry === undefined) return false;
    this.#forget(entry);
    this.#options.link.signal((writer) =>
      write.monitor(writer, Operation.demonitorP, { from: entry.local, to: entry.target, ref }),
    );
    return true;
  }

  linkTo(local: Pid, remote: Pid): void {
    const key = linkKey(local, remote);
    if (this.#links.get(key)?.unlinking === 0) return;
    this.#takeLink(key);
    this.#add({ kind: 'link', local, remote, unlinking: 0 });
    this.#options.link.signal((writer) => write.link(writer, local, remote));
  }

  unlink(local: Pid, remote: Pid): void {
    const entry = this.#links.get(linkKey(local, remote));
    if (entry === undefined || entry.unlinking !== 0) return;
    this.#unlinkId += 1;
    entry.unlinking = this.#unlinkId;
    const id = this.#unlinkId;
    this.#options.link.signal((writer) => write.unlink(writer, Operation.unlinkId, { id, from: local, to: remote }));
  }

  spawn(request: SpawnRequest, args: readonly Term[]): void {
    this.#add({ kind: 'spawning', local: request.from, ref: request.ref });
    this.#options.link.signal((writer) => write.spawn(writer, request, args));
  }

  /** Signals the end of a local process to the remote processes that monitor it or are linked to it. */
  exited(local: Pid, reason: Term): void {
    const entries = this.#byLocal.get(numberOf(local));
    if (entries === undefined) return;
    this.#byLocal.delete(numberOf(local));
    for (const entry of entries) {
      this.#remove(entry);
      this.#signalExit(entry, reason);
    }
  }

  #signalExit(entry: Entry, reason: Term): void {
    const { link } = this.#options;
    if (entry.kind === 'watched') this.#answerDown(entry, reason);
    else if (entry.kind === 'watching') {
      const { local: from, target: to, ref } = entry;
      link.signal((writer) => write.monitor(writer, Operation.demonitorP, { from, to, ref }));
    } else if (entry.kind === 'link' && entry.unlinking === 0) {
      const { local: from, remote: to } = entry;
      this.#sendReason(reason, (writer, ending) => write.exit(writer, { linked: true, from, to }, ending));
    }
  }

  /** Sends a reason, or `system_limit` when no frame can hold it, such as a function's large result. */
  #sendReason(reason: Term, put: (writer: TermWriter, ending: Ending) => void): void {
    const { link } = this.#options;
    try {
      link.signal((writer, payload) => put(writer, { term: reason, payload }));
    } catch (error) {
      if (!(error instanceof DistributionError) && !(error instanceof EtfError)) throw error;
      link.signal((writer, payload) => put(writer, { term: SYSTEM_LIMIT, payload }));
    }
  }

  // --- incoming messages

  control(control: Control, payload: Term): void {
    const { table, link } = this.#options;
    switch (control.op) {
      case 'monitor':
        this.#watch(control.to, control.from, control.ref);
        return;
      case 'demonitor':
        this.#forget(this.#watched.take(control.ref));
        return;
      case 'down':
        this.#down(control.ref, control.reason?.term);
        return;
      case 'link':
        this.#linked(control.from, control.to);
        return;
      case 'unlink':
        this.#takeLink(linkKey(control.to, control.from));
        link.signal((writer) =>
          write.unlink(writer, Operation.unlinkIdAck, { id: control.id, from: control.to, to: control.from }),
        );
        return;
      case 'unlink-ack':
        this.#unlinkDone(control.to, control.from, control.id);
        return;
      case 'exit':
        if (control.linked && !this.#breakLink(control.to, control.from)) return;
        if (!this.#isOurs(control.to)) return;
        this.#options.guard('exit', () => table.exit(control, control.reason?.term));
        return;
      case 'spawn':
        this.#spawnHere(control.request, payload);
        return;
      case 'spawned':
        this.#spawned(control);
        return;
      default:
    }
  }

  /** Ends every monitor and link once with `noconnection`, because the connection was lost. */
  lost(): void {
    const { table, guard, link } = this.#options;
    const all: Entry[] = [...this.#watched, ...this.#watching, ...this.#spawning, ...this.#links.values()];
    for (const entries of [this.#watched, this.#watching, this.#spawning, this.#links, this.#byLocal]) entries.clear();
    for (const entry of all) {
      guard('lost', () => {
        if (entry.kind === 'watching') table.down(monitorOf(entry, link.remote.name), NOCONNECTION);
        else if (entry.kind === 'link' && entry.unlinking === 0)
          table.exit({ to: entry.local, from: entry.remote, linked: true }, NOCONNECTION);
        else if (entry.kind === 'spawning') table.spawned?.(entry.local, entry.ref, NOCONNECTION);
      });
    }
  }

  #isOurs(pid: Pid): boolean {
    return pid.node === this.#options.self.name && pid.creation === this.#options.self.creation;
  }

  #whereIs(target: Target): Pid | undefined {
    if (typeof target !== 'string' && !this.#isOurs(target)) return undefined;
    return this.#options.table.whereIs(target);
  }

  #watch(target: Target, watcher: Pid, ref: Ref): void {
    const local = this.#whereIs(target);
    if (local === undefined) this.#answerDown({ target, watcher, ref }, NOPROC);
    else if (this.#full) this.#answerDown({ target, watcher, ref }, SYSTEM_LIMIT);
    else {
      // Otherwise a reused reference would leave its first monitor behind, beyond every limit.
      this.#forget(this.#watched.take(ref));
      this.#add({ kind: 'watched', local, target, watcher, ref });
    }
  }

  #answerDown({ target, watcher, ref }: Pick<Of<'watched'>, 'target' | 'watcher' | 'ref'>, reason: Term): void {
    const down = { from: target, to: watcher, ref };
    this.#sendReason(reason, (writer, ending) => write.down(writer, down, ending));
  }

  #down(ref: Ref, reason: Term): void {
    const entry = this.#watching.take(ref);
    if (entry === undefined) return;
    this.#forget(entry);
    const { table, guard, link } = this.#options;
    guard('down', () => table.down(monitorOf(entry, link.remote.name), reason));
  }

  #linked(remote: Pid, to: Pid): void {
    const { link } = this.#options;
    const key = linkKey(to, remote);
    // While our unlink is pending, the other side's link is about to be removed.
    if (this.#links.has(key)) return;
    const local = this.#whereIs(to);
    if (local !== undefined && !this.#full) this.#add({ kind: 'link', local, remote, unlinking: 0 });
    else {
      const exit = { linked: true, from: to, to: remote };
      const term = local === undefined ? NOPROC : SYSTEM_LIMIT;
      link.signal((writer, payload) => write.exit(writer, exit, { term, payload }));
    }
  }

  #unlinkDone(local: Pid, remote: Pid, id: number | bigint): void {
    const key = linkKey(local, remote);
    const unlinking = this.#links.get(key)?.unlinking ?? 0;
    if (unlinking !== 0 && unlinking === Number(id)) this.#takeLink(key);
  }

  /** Removes a link. Returns false unless it was active. */
  #breakLink(local: Pid, remote: Pid): boolean {
    return this.#takeLink(linkKey(local, remote))?.unlinking === 0;
  }

  #spawnHere(request: SpawnRequest, args: Term): void {
    const { table, guard, link } = this.#options;
    let answer: SpawnAnswer | Atom = atom('notsup');
    guard('spawn', () => {
      if (Array.isArray(args) && table.spawn !== undefined)
        answer = table.spawn(request, args as Term[], link.remote.name);
    });
    const made = answer as SpawnAnswer | Atom;
    if (!('pid' in made)) {
      link.signal((writer) => write.spawned(writer, { ref: request.ref, to: request.from, flags: 0, result: made }));
      return;
    }
    const flags = (request.link ? LINKED : 0) | (request.monitor ? MONITORED : 0);
    link.signal((writer) => write.spawned(writer, { ref: request.ref, to: request.from, flags, result: made.pid }));
    if (request.monitor) {
      const { ref, from } = request;
      this.#add({ kind: 'watched', local: made.pid, target: made.pid, watcher: from, ref });
    }
    if (request.link) {
      const { from } = request;
      this.#add({ kind: 'link', local: made.pid, remote: from, unlinking: 0 });
    }
    guard('spawn', made.run);
  }

  #spawned({ ref, to, flags, result }: Control & { readonly op: 'spawned' }): void {
    const entry = this.#spawning.take(ref);
    if (entry === undefined) return;
    this.#forget(entry);
    if ('id' in result) {
      if ((flags & MONITORED) !== 0) this.#add({ kind: 'watching', local: to, target: result, ref });
      if ((flags & LINKED) !== 0) this.#add({ kind: 'link', local: to, remote: result, unlinking: 0 });
    }
    this.#options.guard('spawned', () => this.#options.table.spawned?.(to, ref, result));
  }

  // --- the entries

  get #full(): boolean {
    const { share, total, maxEntries } = this.#options;
    return this.size >= share && total() >= maxEntries;
  }

  #add(entry: Entry): void {
    switch (entry.kind) {
      case 'link':
        this.#links.set(linkKey(entry.local, entry.remote), entry);
        break;
      case 'watched':
        this.#watched.set(entry);
        break;
      case 'watching':
        this.#watching.set(entry);
        break;
      default:
        this.#spawning.set(entry);
    }
    const owner = numberOf(entry.local);
    const entries = this.#byLocal.get(owner);
    if (entries === undefined) this.#byLocal.set(owner, new Set([entry]));
    else entries.add(entry);
  }

  #remove(entry: Entry): void {
    switch (entry.kind) {
      case 'link':
        this.#links.delete(linkKey(entry.local, entry.remote));
        break;
      case 'watched':
        this.#watched.take(entry.ref);
        break;
      case 'watching':
        this.#watching.take(entry.ref);
        break;
      default:
        this.#spawning.take(entry.ref);
    }
  }

  #takeLink(key: string): Of<'link'> | undefined {
    const entry = this.#links.get(key);
    this.#links.delete(key);
    this.#forget(entry);
    return entry;
  }

  /** Removes an entry from those of its process. */
  #forget(entry: Entry | undefined): void {
    if (entry === undefined) return;
    const owner = numberOf(entry.local);
    const entries = this.#byLocal.get(owner);
    entries?.delete(entry);
    if (entries?.size === 0) this.#byLocal.delete(owner);
  }
}

/** Returns a unique number for a pid of this node's current lifetime; exact below 2^53. */
function numberOf({ id, serial }: Pid): number {
  return id + serial * 0x1_0000_0000;
}

function linkKey(local: Pid, remote: Pid): string {
  return `link ${local.id}.${local.serial} ${remote.id}.${remote.serial}.${remote.creation}`;
}

function monitorOf({ local, target, ref }: Of<'watching'>, node: string): Monitor {
  return { watcher: local, ref, target: typeof target === 'string' ? { name: target, node } : target };
}

/** Returns the name or pid of the target on its own node. */
export function wireTarget(target: Watched): Target {
  return target instanceof Pid ? target : target.name;
}
