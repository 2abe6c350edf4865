import { Atom, atom, Pid, Ref, type Term, type TermWriter, Tuple } from '@bloom/etf';

// Control messages of the distribution protocol ("Protocol between Connected Nodes"). On the wire each one is a tuple
// that starts with its number; some are followed by a payload. The forms with a trace token mean the same as those
// without.

export type Target = Pid | string;

export type Control =
  | { readonly op: 'send'; readonly from: Pid | undefined; readonly to: Pid | string | Ref }
  | { readonly op: 'link'; readonly from: Pid; readonly to: Pid }
  | { readonly op: 'unlink'; readonly id: number | bigint; readonly from: Pid; readonly to: Pid }
  | { readonly op: 'unlink-ack'; readonly id: number | bigint; readonly from: Pid; readonly to: Pid }
  /** A link broke (`linked`) or a process called exit/2. `reason` is undefined when it follows as payload. */
  | { readonly op: 'exit'; readonly linked: boolean; readonly from: Pid; readonly to: Pid; readonly reason?: Reason }
  | { readonly op: 'monitor'; readonly from: Pid; readonly to: Target; readonly ref: Ref }
  | { readonly op: 'demonitor'; readonly from: Pid; readonly to: Target; readonly ref: Ref }
  | { readonly op: 'down'; readonly from: Target; readonly to: Pid; readonly ref: Ref; readonly reason?: Reason }
  | { readonly op: 'spawn'; readonly request: SpawnRequest }
  | { readonly op: 'spawned'; readonly ref: Ref; readonly to: Pid; readonly flags: number; readonly result: Pid | Atom }
  /** Valid, but without effect here. */
  | { readonly op: 'ignored' };

/** Wraps a reason, because a reason may be any term, including undefined. */
export interface Reason {
  readonly term: Term;
}

export interface SpawnRequest {
  /** Id of the request, and reference of the monitor if one is requested. */
  readonly ref: Ref;
  readonly from: Pid;
  readonly module: string;
  readonly fun: string;
  readonly arity: number;
  readonly monitor: boolean;
  readonly link: boolean;
}

/** Numbers of messages with a payload. */
const WITH_PAYLOAD = new Set([2, 6, 12, 16, 22, 23, 24, 25, 26, 27, 28, 29, 30, 33, 34]);

export function hasPayload(op: number): boolean {
  return WITH_PAYLOAD.has(op);
}

/** True for exit and down messages that carry their reason as payload. */
export function reasonIsPayload(op: number): boolean {
  return op >= 24 && op <= 28;
}

/** Returns the message in a control tuple, or undefined for an unknown number or form. */
export function parseControl(elements: readonly Term[]): Control | undefined {
  const [op, a, b, c, d] = elements;
  const size = elements.length;
  switch (op) {
    case 1:
      return size === 3 && isPid(a) && isPid(b) ? { op: 'link', from: a, to: b } : undefined;
    case 2:
    case 12:
      return size === (op === 2 ? 3 : 4) && isPid(b) ? { op: 'send', from: undefined, to: b } : undefined;
    case 6:
    case 16:
      return size === (op === 6 ? 4 : 5) && isPid(a) && isName(c) ? { op: 'send', from: a, to: nameOf(c) } : undefined;
    case 22:
    case 23:
      return size === (op === 22 ? 3 : 4) && isPid(a) && isPid(b) ? { op: 'send', from: a, to: b } : undefined;
    case 33:
    case 34:
      return size === (op === 33 ? 3 : 4) && isPid(a) && b instanceof Ref ? { op: 'send', from: a, to: b } : undefined;
    case 3:
    case 8:
      return size === 4 ? exit(op === 3, a, b, { term: c }) : undefined;
    case 13:
    case 18:
      return size === 5 ? exit(op === 13, a, b, { term: d }) : undefined;
    case 24:
    case 26:
      return size === 3 ? exit(op === 24, a, b) : undefined;
    case 25:
    case 27:
      return size === 4 ? exit(op === 25, a, b) : undefined;
    case 4:
      return size === 3 ? { op: 'ignored' } : undefined;
    case 5:
      return { op: 'ignored' };
    case 7:
      return size === 3 ? { op: 'ignored' } : undefined;
    case 19:
    case 20:
      if (size !== 4 || !isPid(a) || !isTarget(b) || !(c instanceof Ref)) return undefined;
      return { op: op === 19 ? 'monitor' : 'demonitor', from: a, to: targetOf(b), ref: c };
    case 21:
    case 28:
      if (size !== (op === 21 ? 5 : 4) || !isTarget(a) || !isPid(b) || !(c instanceof Ref)) return undefined;
      return { op: 'down', from: targetOf(a), to: b, ref: c, ...(op === 21 ? { reason: { term: d } } : {}) };
    case 29:
    case 30:
      return size === (op === 29 ? 6 : 7) ? spawn(elements) : undefined;
    case 31:
    case 32:
      return size === (op === 31 ? 5 : 6) ? spawned(a, b, c, d) : undefined;
    case 35:
    case 36:
      if (size !== 4 || !isUnlinkId(a) || !isPid(b) || !isPid(c)) return undefined;
      return { op: op === 35 ? 'unlink' : 'unlink-ack', id: a, from: b, to: c };
    default:
      return undefined;
  }
}

function exit(linked: boolean, from: Term, to: Term, reason?: Reason): Control | undefined {
  if (!isPid(from) || !isPid(to)) return undefined;
  return { op: 'exit', linked, from, to, ...(reason === undefined ? {} : { reason }) };
}

function spawn(elements: readonly Term[]): Control | undefined {
  const [, ref, from, , mfa, options] = elements;
  if (!(ref instanceof Ref) || !isPid(from) || !(mfa instanceof Tuple) || !Array.isArray(options)) return undefined;
  const [module, fun, arity] = mfa.elements;
  if (mfa.elements.length !== 3 || !(module instanceof Atom) || !isName(fun) || typeof arity !== 'number')
    return undefined;
  const wants = (name: string) => (options as Term[]).some((option) => optionName(option) === name);
  return {
    op: 'spawn',
    request: {
      ref,
      from,
      module: module.name,
      fun: nameOf(fun),
      arity,
      monitor: wants('monitor'),
      link: wants('link'),
    },
  };
}

/** Returns the name of an option: `monitor` or `{monitor, Options}`. */
function optionName(option: Term): string | undefined {
  const head = option instanceof Tuple ? option.elements[0] : option;
  return head instanceof Atom ? head.name : undefined;
}

function spawned(ref: Term, to: Term, flags: Term, result: Term): Control | undefined {
  if (!(ref instanceof Ref) || !isPid(to) || typeof flags !== 'number') return undefined;
  if (isPid(result) || result instanceof Atom) return { op: 'spawned', ref, to, flags, result };
  return isName(result) ? { op: 'spawned', ref, to, flags, result: atom(nameOf(result)) } : undefined;
}

function isPid(term: Term): term is Pid {
  return term instanceof Pid;
}

/** True for names. They are atoms, some of which are decoded to other values (true, nil, ...). */
function isName(term: Term): term is Atom | boolean | null | undefined {
  return term instanceof Atom || typeof term === 'boolean' || term === null || term === undefined;
}

function nameOf(term: Atom | boolean | null | undefined): string {
  if (term instanceof Atom) return term.name;
  return term === null ? 'nil' : String(term);
}

function isTarget(term: Term): term is Pid | Atom | boolean | null | undefined {
  return isPid(term) || isName(term);
}

function targetOf(term: Pid | Atom | boolean | null | undefined): Target {
  return isPid(term) ? term : nameOf(term);
}

function isUnlinkId(term: Term): term is number | bigint {
  return (typeof term === 'number' && Number.isInteger(term) && term > 0) || (typeof term === 'bigint' && term > 0n);
}

// Writing. Each function appends the control tuple with its version byte. A tuple starts with 104 and its arity, a
// small integer is 97 and its value, the empty atom is 119 0.

const HEADS = new Map<number, Uint8Array>();

function head(writer: TermWriter, arity: number, op: number): void {
  let bytes = HEADS.get(op);
  if (bytes === undefined) {
    bytes = new Uint8Array([131, 104, arity, 97, op]);
    HEADS.set(op, bytes);
  }
  writer.raw(bytes);
}

const UNUSED = new Uint8Array([119, 0]);

function target(writer: TermWriter, to: Target): void {
  writer.raw(typeof to === 'string' ? atom(to).wire : to.wire);
}

export const write = {
  /** {2, '', To} */
  send(writer: TermWriter, to: Pid): void {
    head(writer, 3, 2);
    writer.raw(UNUSED);
    writer.raw(to.wire);
  },
  /** {22, From, To} */
  sendSender(writer: TermWriter, from: Pid, to: Pid): void {
    head(writer, 3, 22);
    writer.raw(from.wire);
    writer.raw(to.wire);
  },
  /** {6, From, '', Name} */
  sendName(writer: TermWriter, from: Pid, name: string): void {
    head(writer, 4, 6);
    writer.raw(from.wire);
    writer.raw(UNUSED);
    writer.raw(atom(name).wire);
  },
  /** {33, From, Alias} */
  sendAlias(writer: TermWriter, from: Pid, alias: Ref): void {
    head(writer, 3, 33);
    writer.raw(from.wire);
    writer.raw(alias.wire);
  },
  /** {1, From, To} */
  link(writer: TermWriter, from: Pid, to: Pid): void {
    head(writer, 3, 1);
    writer.raw(from.wire);
    writer.raw(to.wire);
  },
  /** {35, Id, From, To} and {36, Id, From, To} */
  unlink(writer: TermWriter, op: 35 | 36, id: number | bigint, from: Pid, to: Pid): void {
    head(writer, 4, op);
    writer.part(id);
    writer.raw(from.wire);
    writer.raw(to.wire);
  },
  /** {24 or 26, From, To}, reason as payload; {3 or 8, From, To, Reason} without EXIT_PAYLOAD */
  exit(writer: TermWriter, linked: boolean, payload: boolean, from: Pid, to: Pid, reason: Term): void {
    const op = linked ? (payload ? 24 : 3) : payload ? 26 : 8;
    head(writer, payload ? 3 : 4, op);
    writer.raw(from.wire);
    writer.raw(to.wire);
    if (payload) writer.term(reason);
    else writer.part(reason);
  },
  /** {19, From, To, Ref} and {20, From, To, Ref} */
  monitor(writer: TermWriter, op: 19 | 20, from: Pid, to: Target, ref: Ref): void {
    head(writer, 4, op);
    writer.raw(from.wire);
    target(writer, to);
    writer.raw(ref.wire);
  },
  /** {28, From, To, Ref}, reason as payload; {21, From, To, Ref, Reason} without EXIT_PAYLOAD */
  down(writer: TermWriter, payload: boolean, from: Target, to: Pid, ref: Ref, reason: Term): void {
    head(writer, payload ? 4 : 5, payload ? 28 : 21);
    target(writer, from);
    writer.raw(to.wire);
    writer.raw(ref.wire);
    if (payload) writer.term(reason);
    else writer.part(reason);
  },
  /** {29, ReqId, From, GroupLeader, {M, F, A}, Opts}, arguments as payload */
  spawn(writer: TermWriter, request: SpawnRequest, args: readonly Term[]): void {
    const { ref, from, module, fun, arity } = request;
    const options = [...(request.monitor ? [atom('monitor')] : []), ...(request.link ? [atom('link')] : [])];
    head(writer, 6, 29);
    writer.raw(ref.wire);
    writer.raw(from.wire);
    writer.raw(from.wire);
    writer.part(new Tuple([atom(module), atom(fun), arity]));
    writer.part(options);
    writer.term(args);
  },
  /** {31, ReqId, To, Flags, Pid or error} */
  spawned(writer: TermWriter, ref: Ref, to: Pid, flags: number, result: Pid | Atom): void {
    head(writer, 5, 31);
    writer.raw(ref.wire);
    writer.raw(to.wire);
    writer.part(flags);
    writer.raw(result.wire);
  },
};
