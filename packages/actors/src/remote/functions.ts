import { Atom, atom, isAtom, Pid, type Term, Tuple, tuple } from '@bloom/etf';
import { asGenCall, type DistributionNode, type SpawnAnswer, type SpawnRequest } from '@bloom/distribution';
import type { Log } from '@bloom/log';
import { inTime, type Clock } from '@bloom/time';
import { Exit, notSendable } from '../errors.js';
import type { RemoteCounters } from './counters.js';
import { faultText, isEncodable } from './reasons.js';

/** A function that Erlang may call by `rpc` and `erpc`. Thrown errors reach the caller, an `Exit` with its reason. */
export type NodeFunction = (...args: Term[]) => Term | void | Promise<Term | void>;

/** Identifies a function of this node. */
export type FunctionName = readonly [module: string, name: string, arity: number];

export interface FunctionOptions {
  /** Time after which the caller gets the error `timeout`. Default 5 s. */
  timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 5_000;
/** Registered name of the process that older callers and C nodes call. */
export const REX = 'rex';

const BADRPC = atom('badrpc');
const EXIT = atom('EXIT');
const UNDEF = atom('undef');
const SYSTEM_LIMIT = atom('system_limit');

const TOO_LARGE = badrpc(SYSTEM_LIMIT, []);

interface Entry {
  readonly run: NodeFunction;
  readonly timeoutMs: number;
}

/** How a call of a function ended. */
type Outcome = { readonly value: Term } | { readonly reason: Term; readonly stack: readonly Term[] };

export interface FunctionsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly counters: RemoteCounters;
  /** Maximum number of functions running at once. */
  readonly maxRunning: number;
}

/** The functions that other nodes may call: only registered ones. */
export class Functions {
  readonly #options: FunctionsOptions;
  readonly #table = new Map<string, Entry>();
  /** Processes of functions started by erpc. */
  readonly #processes = new Map<string, Pid>();
  #active = 0;
  #node: DistributionNode | undefined;
  #rex: Pid | undefined;

  constructor(options: FunctionsOptions) {
    this.#options = options;
  }

  bind(node: DistributionNode, rex: Pid): void {
    this.#node = node;
    this.#rex = rex;
  }

  /** Replaces any function of the same name and arity. */
  register([module, name, arity]: FunctionName, run: NodeFunction, options: FunctionOptions): void {
    this.#table.set(`${module}:${name}/${arity}`, { run, timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS });
  }

  /** The process of a running function. */
  process(pid: Pid): Pid | undefined {
    return this.#processes.get(idOf(pid));
  }

  /** Answers a spawn request. Only erpc calls and casts are accepted. */
  spawn({ module, fun, arity }: SpawnRequest, args: readonly Term[], from: string): SpawnAnswer | Atom {
    const node = this.#node;
    if (node === undefined || module !== 'erpc') return atom('notsup');
    const isCall = fun === 'execute_call' && arity === 4 && args.length === 4;
    if (!isCall && !(fun === 'execute_cast' && arity === 3 && args.length === 3)) return atom('notsup');
    if (this.#isFull()) return SYSTEM_LIMIT;

    const [res, ...mfa] = isCall ? args : [undefined, ...args];
    const pid = node.createPid();
    this.#processes.set(idOf(pid), pid);
    const run = async (): Promise<void> => {
      const outcome = await this.#run(mfa, from);
      this.#processes.delete(idOf(pid));
      node.exited(pid, isCall ? endOf(res, outcome) : atom('normal'));
    };

    return { pid, run: () => void run() };
  }

  /** Handles a message to `rex`. */
  rex(message: Term, from: string): void {
    const node = this.#node;
    const rex = this.#rex;
    if (node === undefined || rex === undefined) return;

    const call = asGenCall(message);
    if (call !== undefined) {
      void this.#rexCall(call.request, from, (reply) => node.reply(call, reply, rex));
      return;
    }
    if (!(message instanceof Tuple) || message.elements.length !== 2) return;
    const [first, second] = message.elements;
    if (isAtom(first, '$gen_cast')) void this.#rexCall(second, from, undefined);
    else if (first instanceof Pid && first.node === from) {
      if (isAtom(second, 'features_request')) {
        const features = tuple(atom('features_reply'), atom(node.name), [atom('erpc')]);
        node.send(first, features, { from: rex });
      } else void this.#rexCall(second, from, (reply) => node.send(first, tuple(atom(REX), reply), { from: rex }));
    }
  }

  /** Handles `{call, M, F, Args, GroupLeader}` and `{cast, ...}`. Anything else gets no answer. */
  async #rexCall(request: Term, from: string, answer: ((reply: Term) => void) | undefined): Promise<void> {
    if (!(request instanceof Tuple) || request.elements.length !== 5) return;
    const [kind, ...mfa] = request.elements.slice(0, 4);
    if (!isAtom(kind, answer === undefined ? 'cast' : 'call')) return;
    const outcome: Outcome = this.#isFull() ? { reason: SYSTEM_LIMIT, stack: [] } : await this.#run(mfa, from);

    // A result that cannot be sent is answered with an error.
    for (const reply of ['value' in outcome ? outcome.value : badrpc(outcome.reason, outcome.stack), TOO_LARGE]) {
      try {
        answer?.(reply);
        return;
      } catch (error) {
        this.#options.log.error('actor.reply_not_sendable', { node: from, error });
      }
    }
  }

  #isFull(): boolean {
    return this.#active >= this.#options.maxRunning;
  }

  /** Never rejects. The outcome can be encoded. */
  async #run([module, fun, args]: readonly Term[], from: string): Promise<Outcome> {
    const { counters, log } = this.#options;
    counters.functionCalls++;
    const named = module instanceof Atom && fun instanceof Atom && Array.isArray(args);
    const name = named ? `${module.name}:${fun.name}/${(args as Term[]).length}` : 'no function';
    const entry = named ? this.#table.get(name) : undefined;
    if (entry === undefined) {
      counters.functionFailures++;
      return { reason: UNDEF, stack: [tuple(module, fun, args, [])] };
    }

    this.#active++;
    try {
      const value = await this.#runInTime(entry, args as Term[]);
      if (!isEncodable(value)) throw notSendable('the result of a function is not a term');
      return { value };
    } catch (error) {
      counters.functionFailures++;
      log.warn('actor.function_failed', { function: name, node: from, error });
      const own = error instanceof Exit && isEncodable(error.reason);
      return { reason: own ? error.reason : tuple(atom('crashed'), faultText(error)), stack: [] };
    } finally {
      this.#active--;
    }
  }

  #runInTime({ run, timeoutMs }: Entry, args: Term[]): Promise<Term> {
    const { clock } = this.#options;
    const late = (): never => {
      throw new Exit(atom('timeout'), `no result within ${timeoutMs} ms`);
    };
    const work = (async () => (await run(...args)) as Term)();

    return inTime(work, { timeoutMs, late, clock });
  }
}

/** The exit reason that carries the result of an erpc call. */
function endOf(res: Term, outcome: Outcome): Term {
  return 'value' in outcome
    ? tuple(res, atom('return'), outcome.value)
    : tuple(res, atom('error'), outcome.reason, outcome.stack);
}

function badrpc(reason: Term, stack: readonly Term[]): Term {
  return tuple(BADRPC, tuple(EXIT, tuple(reason, stack)));
}

function idOf(pid: Pid): string {
  return `${pid.id}.${pid.serial}`;
}
