import { atom, type Atom, atomMap, ImproperList, type Pid, type Ref, type Term, Tuple, tuple } from '@bloom/etf';
import { DistributionNode, type ProcessTable } from '@bloom/distribution';
import { silentLog } from '@bloom/log';
import { COOKIE } from './erlang.js';

export const TERM_100: Term = tuple(
  atom('room_event'),
  123456,
  'participant-00112233445566778899',
  atomMap({ id: 7, x: 1.5, kind: 'audio', on: true }),
);
export const KIB = Buffer.alloc(1_024, 0xff);

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

/** The asking side of the measurements: one of our nodes in this process. */
export class Driver {
  readonly #own: Pid;
  #wake: (message: Term) => void = () => {};

  private constructor(
    readonly node: DistributionNode,
    own: Pid,
  ) {
    this.#own = own;
  }

  static async start(name: string, mapperPort: number): Promise<Driver> {
    const table: ProcessTable = {
      whereIs: () => undefined,
      deliver: (_, message) => driver.#wake(message),
      down: () => driver.#wake(atom('down')),
      exit: () => {},
    };
    const node = await DistributionNode.start({
      name,
      mode: 'name',
      cookie: COOKIE,
      mapper: { port: mapperPort },
      processes: () => table,
      log: silentLog,
    });
    const driver = new Driver(node, node.createPid());
    return driver;
  }

  /** Measures round trips like gen_server:call: monitor, request, reply to the alias, demonitor. In microseconds. */
  async roundTrips(node: string, count: number): Promise<Quantiles> {
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      const start = performance.now();
      const ref: Ref = this.node.createRef();
      const reply = this.#next();
      this.node.monitorAs(ref, this.#own, { name: 'echo', node });
      const tag = new ImproperList([atom('alias')], ref);
      this.node.send({ node, name: 'echo' }, tuple(atom('$gen_call'), tuple(this.#own, tag), TERM_100), {
        from: this.#own,
        kind: 'query',
      });
      const message = await reply;
      if (!(message instanceof Tuple)) throw new Error(`no reply from ${node}: ${String(message as Atom)}`);
      this.node.demonitor(ref);
      times.push((performance.now() - start) * 1_000);
    }
    const sorted = times.toSorted((a, b) => a - b);
    return { p50: sorted[count >> 1] as number, p99: sorted[Math.floor(count * 0.99)] as number };
  }

  /** Returns messages per second, measured until the receiver has counted them all. */
  async oneWay(node: string, message: Term, count: number): Promise<number> {
    const to = { node, name: 'sink' };
    const start = performance.now();
    for (let i = 0; i < count; ) {
      // Above the high-water mark, wait for the next turn, as Erlang suspends the sender.
      if (this.node.send(to, message, { from: this.#own, kind: 'query' }) === 'overflow') await turn();
      else if (++i % 1_000 === 0) await turn();
    }
    const counted = this.#next();
    while (this.node.send(to, tuple(atom('done'), this.#own), { from: this.#own, kind: 'query' }) === 'overflow')
      await turn();
    if ((await counted) !== count) throw new Error(`${node} counted ${String(await counted)} of ${count}`);
    return (count * 1_000) / (performance.now() - start);
  }

  #next(): Promise<Term> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
