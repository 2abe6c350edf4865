import { Atom, atom, ImproperList, isAtom, Pid, Ref, type Term, Tuple, tuple } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import {
  asGenCall,
  DistributionNode,
  type Envelope,
  type ExitSignal,
  type Monitor,
  type NodeDown,
  type NodeOptions,
  type NodeUp,
  type ProcessTable,
  type SpawnAnswer,
  type SpawnRequest,
  type Target,
  type Watched,
} from '../index.js';

export const COOKIE = 'c';

// A minimal process system over a node, enough to talk to real Erlang in tests: named processes that answer calls, a
// table of functions for rpc and erpc, and a client that calls, monitors, links and spawns.

export interface Exit {
  readonly from: Pid;
  readonly reason: Term;
  readonly linked: boolean;
}

export interface Process {
  readonly pid: Pid;
  readonly messages: Term[];
  readonly exits: Exit[];
  onMessage?: (message: Term, from: Pid | undefined) => void;
}

export type FunctionTable = Record<string, (...args: Term[]) => Term>;

export type CallResult = { readonly reply: Term } | { readonly down: Term } | { readonly timeout: true };

const pidKey = (pid: Pid): string => `${pid.id}.${pid.serial}`;
const refKey = (ref: Ref): string => ref.words.join('.');

export class TestNode implements ProcessTable {
  readonly events: (({ up: string } & Partial<NodeUp>) | ({ down: string } & Partial<NodeDown>))[] = [];
  readonly functions: FunctionTable = { 'calc:add/2': (a, b) => (a as number) + (b as number) };
  node!: DistributionNode;
  readonly #processes = new Map<string, Process>();
  readonly #names = new Map<string, Pid>();
  readonly #replies = new Map<string, (result: CallResult) => void>();
  readonly #spawns = new Map<string, (answer: Pid | Atom) => void>();
  #client!: Process;

  static async start(name: string, mapperPort: number, options: Partial<NodeOptions> = {}): Promise<TestNode> {
    const test = new TestNode();
    test.node = await DistributionNode.start({
      name,
      mode: 'name',
      cookie: COOKIE,
      tickTimeMs: 8_000,
      mapper: { port: mapperPort },
      processes: () => test,
      announceForeign: true,
      log: silentLog,
      ...options,
    });
    test.node.subscribe({
      nodeup: ({ node, ...rest }) => test.events.push({ up: node, ...rest }),
      nodedown: ({ node, ...rest }) => test.events.push({ down: node, ...rest }),
    });
    test.#client = test.process();
    test.#startCalc();
    test.#startRex();
    return test;
  }

  stop(): Promise<void> {
    return this.node.stop();
  }

  // --- processes

  process(name?: string): Process {
    const process: Process = { pid: this.node.createPid(), messages: [], exits: [] };
    this.#processes.set(pidKey(process.pid), process);
    if (name !== undefined) this.#names.set(name, process.pid);
    return process;
  }

  end(pid: Pid, reason: Term): void {
    this.#processes.delete(pidKey(pid));
    for (const [name, owner] of this.#names) if (pidKey(owner) === pidKey(pid)) this.#names.delete(name);
    this.node.exited(pid, reason);
  }

  /**
   * Starts `calc`, which answers {add, A, B} and echoes {echo, T}. After {die, Reason} another process takes its place.
   */
  #startCalc(): void {
    const calc = this.process('calc');
    calc.onMessage = (message) => {
      const call = asGenCall(message);
      if (call?.request instanceof Tuple) {
        const [what, a, b] = call.request.elements;
        if (isAtom(what, 'add')) this.node.reply(call, (a as number) + (b as number), calc.pid);
        if (isAtom(what, 'echo')) this.node.reply(call, a, calc.pid);
      } else if (message instanceof Tuple && isAtom(message.elements[0], 'die')) {
        this.end(calc.pid, message.elements[1]);
        this.#startCalc();
      } else calc.messages.push(message);
    };
  }

  /** Starts `rex` for C nodes ({From, {call, M, F, Args, _}}) and for old callers. */
  #startRex(): void {
    const rex = this.process('rex');
    rex.onMessage = (message) => {
      const call = asGenCall(message);
      if (call !== undefined) this.#rexCall(call.request, (result) => this.node.reply(call, result, rex.pid));
      else if (message instanceof Tuple && message.elements[0] instanceof Pid) {
        const [from, request] = message.elements;
        this.#rexCall(request, (result) => this.node.send(from, tuple(atom('rex'), result), { from: rex.pid }));
      }
    };
  }

  #rexCall(request: Term, answer: (result: Term) => void): void {
    if (!(request instanceof Tuple)) return;
    const [call, module, fun, args] = request.elements;
    if (!isAtom(call, 'call') || !(module instanceof Atom) || !(fun instanceof Atom) || !Array.isArray(args)) return;
    const run = this.functions[`${module.name}:${fun.name}/${args.length}`];
    answer(run === undefined ? tuple(atom('badrpc'), atom('undef')) : run(...(args as Term[])));
  }

  whereIs(target: Target): Pid | undefined {
    if (typeof target === 'string') return this.#names.get(target);
    return this.#processes.get(pidKey(target))?.pid;
  }

  deliver({ to, from }: Envelope, message: Term): void {
    if (to instanceof Ref) {
      this.#answered(message);
      return;
    }
    const pid = this.whereIs(to);
    const process = pid === undefined ? undefined : this.#processes.get(pidKey(pid));
    if (process === undefined) return;
    if (process === this.#client && this.#answered(message)) return;
    if (process.onMessage !== undefined) process.onMessage(message, from);
    else process.messages.push(message);
  }

  down({ ref }: Monitor, reason: Term): void {
    this.#replies.get(refKey(ref))?.({ down: reason });
  }

  exit({ to, from, linked }: ExitSignal, reason: Term): void {
    const process = this.#processes.get(pidKey(to));
    process?.exits.push({ from, reason, linked });
  }

  spawn(request: SpawnRequest, args: readonly Term[]): SpawnAnswer | Atom {
    if (request.module !== 'erpc') return atom('notsup');
    const { pid } = this.process();
    const run = (): void => this.end(pid, this.#erpc(request, args));
    return { pid, run };
  }

  #erpc(request: SpawnRequest, args: readonly Term[]): Term {
    const [res, module, fun, list] = request.fun === 'execute_call' ? args : [undefined, ...args];
    const key = `${(module as Atom).name}:${(fun as Atom).name}/${(list as Term[]).length}`;
    const run = this.functions[key];
    if (run === undefined) return tuple(res, atom('error'), atom('undef'), [tuple(module, fun, list, [])]);
    return tuple(res, atom('return'), run(...(list as Term[])));
  }

  spawned(_: Pid, ref: Ref, result: Pid | Atom): void {
    this.#spawns.get(refKey(ref))?.(result);
  }

  // --- client

  /** Calls gen_server:call({Name, Node}, Request). */
  async call(target: { node: string; name: string }, request: Term, timeoutMs = 5_000): Promise<CallResult> {
    await this.node.connect(target.node);
    const ref = this.node.createRef();
    const tag = new ImproperList([atom('alias')], ref);
    return await this.#expect(ref, timeoutMs, () => {
      this.node.monitorAs(ref, this.#client.pid, target);
      const from = tuple(this.#client.pid, tag);
      this.node.send(target, tuple(atom('$gen_call'), from, request), { from: this.#client.pid });
    });
  }

  /** Calls erlang:monitor. Resolves with the reason. */
  monitor(target: Watched, timeoutMs = 5_000): Promise<CallResult> {
    const ref = this.node.createRef();
    return this.#expect(ref, timeoutMs, () => this.node.monitorAs(ref, this.#client.pid, target));
  }

  /** Calls erpc:call. The reason of its monitor is {Res, return, Value} or similar; `Res` is removed. */
  async erpcCall(node: string, [module, fun]: readonly [string, string], args: readonly Term[]): Promise<Term> {
    await this.node.connect(node);
    const ref = this.node.createRef();
    const result = await this.#expect(ref, 5_000, () =>
      this.node.spawn(
        node,
        { ref, from: this.#client.pid, module: 'erpc', fun: 'execute_call', arity: 4, monitor: true, link: false },
        [ref, atom(module), atom(fun), args],
      ),
    );
    return 'down' in result && result.down instanceof Tuple
      ? new Tuple(result.down.elements.slice(1))
      : JSON.stringify(result);
  }

  #expect(ref: Ref, timeoutMs: number, ask: () => void): Promise<CallResult> {
    return new Promise((resolve) => {
      const settle = (result: CallResult): void => {
        clearTimeout(timer);
        this.#replies.delete(refKey(ref));
        this.node.demonitor(ref);
        resolve(result);
      };
      const timer = setTimeout(() => settle({ timeout: true }), timeoutMs);
      this.#replies.set(refKey(ref), settle);
      ask();
    });
  }

  /** Returns true for the reply to a call, which may go to the alias or to the pid. */
  #answered(message: Term): boolean {
    if (!(message instanceof Tuple) || message.elements.length !== 2) return false;
    const [tag, reply] = message.elements;
    const ref = tag instanceof ImproperList ? tag.tail : tag;
    const waiting = ref instanceof Ref ? this.#replies.get(refKey(ref)) : undefined;
    waiting?.({ reply });
    return waiting !== undefined;
  }
}
