import { Atom, atom, Pid, Ref, type Term, type TermWriter, Tuple } from '@bloom/etf';
import type { SpawnRequest, Target } from '../processes.js';

// Control messages of the distribution protocol ("Protocol between Connected Nodes"). On the wire each one is a tuple
// that starts with its number; some are followed by a payload. The forms with a trace token mean the same as those
// without.

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

/** Numbers of the messages, by their names in the protocol. `Tt` marks the form with a trace token. */
export const Operation = {
  link: 1,
  send: 2,
  exit: 3,
  unlink: 4,
  nodeLink: 5,
  regSend: 6,
  groupLeader: 7,
  exit2: 8,
  sendTt: 12,
  exitTt: 13,
  regSendTt: 16,
  exit2Tt: 18,
  monitorP: 19,
  demonitorP: 20,
  monitorPExit: 21,
  sendSender: 22,
  sendSenderTt: 23,
  payloadExit: 24,
  payloadExitTt: 25,
  payloadExit2: 26,
  payloadExit2Tt: 27,
  payloadMonitorPExit: 28,
  spawnRequest: 29,
  spawnRequestTt: 30,
  spawnReply: 31,
  spawnReplyTt: 32,
  aliasSend: 33,
  aliasSendTt: 34,
  unlinkId: 35,
  unlinkIdAck: 36,
} as const;

/** Number of elements, their meaning, and what follows the tuple. */
interface Form {
  /** Undefined = any. */
  readonly size?: number;
  readonly payload?: 'message' | 'reason' | 'arguments';
  readonly read: (elements: readonly Term[]) => Control | undefined;
}

const FORMS = new Map<Term, Form>([
  [Operation.link, { size: 3, read: link }],
  [Operation.send, { size: 3, payload: 'message', read: send }],
  [Operation.sendTt, { size: 4, payload: 'message', read: send }],
  [Operation.regSend, { size: 4, payload: 'message', read: sendToName }],
  [Operation.regSendTt, { size: 5, payload: 'message', read: sendToName }],
  [Operation.sendSender, { size: 3, payload: 'message', read: sendFromSender }],
  [Operation.sendSenderTt, { size: 4, payload: 'message', read: sendFromSender }],
  [Operation.aliasSend, { size: 3, payload: 'message', read: sendToAlias }],
  [Operation.aliasSendTt, { size: 4, payload: 'message', read: sendToAlias }],
  [Operation.exit, { size: 4, read: (elements) => exit(true, elements, { term: elements[3] }) }],
  [Operation.exit2, { size: 4, read: (elements) => exit(false, elements, { term: elements[3] }) }],
  [Operation.exitTt, { size: 5, read: (elements) => exit(true, elements, { term: elements[4] }) }],
  [Operation.exit2Tt, { size: 5, read: (elements) => exit(false, elements, { term: elements[4] }) }],
  [Operation.payloadExit, { size: 3, payload: 'reason', read: (elements) => exit(true, elements) }],
  [Operation.payloadExitTt, { size: 4, payload: 'reason', read: (elements) => exit(true, elements) }],
  [Operation.payloadExit2, { size: 3, payload: 'reason', read: (elements) => exit(false, elements) }],
  [Operation.payloadExit2Tt, { size: 4, payload: 'reason', read: (elements) => exit(false, elements) }],
  [Operation.unlink, { size: 3, read: ignore }],
  [Operation.nodeLink, { read: ignore }],
  [Operation.groupLeader, { size: 3, read: ignore }],
  [Operation.monitorP, { size: 4, read: (elements) => monitor('monitor', elements) }],
  [Operation.demonitorP, { size: 4, read: (elements) => monitor('demonitor', elements) }],
  [Operation.monitorPExit, { size: 5, read: (elements) => down(elements, { term: elements[4] }) }],
  [Operation.payloadMonitorPExit, { size: 4, payload: 'reason', read: (elements) => down(elements) }],
  [Operation.spawnRequest, { size: 6, payload: 'arguments', read: spawn }],
  [Operation.spawnRequestTt, { size: 7, payload: 'arguments', read: spawn }],
  [Operation.spawnReply, { size: 5, read: spawned }],
  [Operation.spawnReplyTt, { size: 6, read: spawned }],
  [Operation.unlinkId, { size: 4, read: (elements) => unlink('unlink', elements) }],
  [Operation.unlinkIdAck, { size: 4, read: (elements) => unlink('unlink-ack', elements) }],
]);

export function hasPayload(op: Term): boolean {
  return FORMS.get(op)?.payload !== undefined;
}

/** True for exit and down messages that carry their reason as payload. */
export function reasonIsPayload(op: Term): boolean {
  return FORMS.get(op)?.payload === 'reason';
}

/** Returns the message in a control tuple, or undefined for an unknown number or form. */
export function parseControl(elements: readonly Term[]): Control | undefined {
  const form = FORMS.get(elements[0]);
  if (form === undefined || (form.size !== undefined && form.size !== elements.length)) return undefined;
  return form.read(elements);
}

function ignore(): Control {
  return { op: 'ignored' };
}

function link([, from, to]: readonly Term[]): Control | undefined {
  return isPid(from) && isPid(to) ? { op: 'link', from, to } : undefined;
}

function unlink(op: 'unlink' | 'unlink-ack', [, id, from, to]: readonly Term[]): Control | undefined {
  return isUnlinkId(id) && isPid(from) && isPid(to) ? { op, id, from, to } : undefined;
}

function send([, , to]: readonly Term[]): Control | undefined {
  return isPid(to) ? { op: 'send', from: undefined, to } : undefined;
}

function sendFromSender([, from, to]: readonly Term[]): Control | undefined {
  return isPid(from) && isPid(to) ? { op: 'send', from, to } : undefined;
}

function sendToName([, from, , to]: readonly Term[]): Control | undefined {
  return isPid(from) && isName(to) ? { op: 'send', from, to: nameOf(to) } : undefined;
}

function sendToAlias([, from, to]: readonly Term[]): Control | undefined {
  return isPid(from) && to instanceof Ref ? { op: 'send', from, to } : undefined;
}

function exit(linked: boolean, [, from, to]: readonly Term[], reason?: Reason): Control | undefined {
  if (!isPid(from) || !isPid(to)) return undefined;
  return { op: 'exit', linked, from, to, ...(reason === undefined ? {} : { reason }) };
}

function monitor(op: 'monitor' | 'demonitor', [, from, to, ref]: readonly Term[]): Control | undefined {
  return isPid(from) && isTarget(to) && ref instanceof Ref ? { op, from, to: targetOf(to), ref } : undefined;
}

function down([, from, to, ref]: readonly Term[], reason?: Reason): Control | undefined {
  if (!isTarget(from) || !isPid(to) || !(ref instanceof Ref)) return undefined;
  return { op: 'down', from: targetOf(from), to, ref, ...(reason === undefined ? {} : { reason }) };
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

function spawned([, ref, to, flags, result]: readonly Term[]): Control | undefined {
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

type Unlink = Omit<Control & { op: 'unlink' }, 'op'>;
type Exit = Omit<Control & { op: 'exit' }, 'op' | 'reason'>;
type Monitor = Omit<Control & { op: 'monitor' }, 'op'>;
type Down = Omit<Control & { op: 'down' }, 'op' | 'reason'>;
type Spawned = Omit<Control & { op: 'spawned' }, 'op'>;

/** A reason as it is sent: as the payload, or in the control tuple to a node without EXIT_PAYLOAD. */
export interface Ending extends Reason {
  readonly payload: boolean;
}

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
    head(writer, 3, Operation.send);
    writer.raw(UNUSED);
    writer.raw(to.wire);
  },
  /** {22, From, To} */
  sendSender(writer: TermWriter, from: Pid, to: Pid): void {
    head(writer, 3, Operation.sendSender);
    writer.raw(from.wire);
    writer.raw(to.wire);
  },
  /** {6, From, '', Name} */
  sendName(writer: TermWriter, from: Pid, name: string): void {
    head(writer, 4, Operation.regSend);
    writer.raw(from.wire);
    writer.raw(UNUSED);
    writer.raw(atom(name).wire);
  },
  /** {33, From, Alias} */
  sendAlias(writer: TermWriter, from: Pid, alias: Ref): void {
    head(writer, 3, Operation.aliasSend);
    writer.raw(from.wire);
    writer.raw(alias.wire);
  },
  /** {1, From, To} */
  link(writer: TermWriter, from: Pid, to: Pid): void {
    head(writer, 3, Operation.link);
    writer.raw(from.wire);
    writer.raw(to.wire);
  },
  /** {35, Id, From, To} and {36, Id, From, To} */
  unlink(
    writer: TermWriter,
    op: typeof Operation.unlinkId | typeof Operation.unlinkIdAck,
    { id, from, to }: Unlink,
  ): void {
    head(writer, 4, op);
    writer.part(id);
    writer.raw(from.wire);
    writer.raw(to.wire);
  },
  /** {24 or 26, From, To}, reason as payload; {3 or 8, From, To, Reason} without EXIT_PAYLOAD */
  exit(writer: TermWriter, { linked, from, to }: Exit, { term: reason, payload }: Ending): void {
    if (payload) head(writer, 3, linked ? Operation.payloadExit : Operation.payloadExit2);
    else head(writer, 4, linked ? Operation.exit : Operation.exit2);
    writer.raw(from.wire);
    writer.raw(to.wire);
    if (payload) writer.term(reason);
    else writer.part(reason);
  },
  /** {19, From, To, Ref} and {20, From, To, Ref} */
  monitor(
    writer: TermWriter,
    op: typeof Operation.monitorP | typeof Operation.demonitorP,
    { from, to, ref }: Monitor,
  ): void {
    head(writer, 4, op);
    writer.raw(from.wire);
    target(writer, to);
    writer.raw(ref.wire);
  },
  /** {28, From, To, Ref}, reason as payload; {21, From, To, Ref, Reason} without EXIT_PAYLOAD */
  down(writer: TermWriter, { from, to, ref }: Down, { term: reason, payload }: Ending): void {
    head(writer, payload ? 4 : 5, payload ? Operation.payloadMonitorPExit : Operation.monitorPExit);
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
    head(writer, 6, Operation.spawnRequest);
    writer.raw(ref.wire);
    writer.raw(from.wire);
    writer.raw(from.wire);
    writer.part(new Tuple([atom(module), atom(fun), arity]));
    writer.part(options);
    writer.term(args);
  },
  /** {31, ReqId, To, Flags, Pid or error} */
  spawned(writer: TermWriter, { ref, to, flags, result }: Spawned): void {
    head(writer, 5, Operation.spawnReply);
    writer.raw(ref.wire);
    writer.raw(to.wire);
    writer.part(flags);
    writer.raw(result.wire);
  },
};
