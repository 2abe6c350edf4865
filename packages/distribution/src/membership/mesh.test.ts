import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { atom, atomMap, type Term, tuple } from '@bloom/etf';
import fc from 'fast-check';
import { Mesh, type MeshAction } from './mesh.js';

// A simulation of meshes without sockets: dials take a while, messages arrive in order, tests control the time.

interface Station {
  readonly mesh: Mesh;
  readonly events: string[];
  readonly links: Set<string>;
}

class SimulatedMesh {
  readonly #random: () => number;
  now = 0;
  handshakes = 0;
  collisions = 0;
  readonly stations = new Map<string, Station>();
  readonly cut = new Set<string>();
  #queue: { at: number; order: number; run: () => void }[] = [];
  #order = 0;

  constructor(random = (): number => 0.5) {
    this.#random = random;
  }

  add(name: string, tool = false): Station {
    const mesh = new Mesh({ self: name, tool, acceptable: (node) => node.includes('@'), random: this.#random });
    const station = { mesh, events: [], links: new Set<string>() };
    this.stations.set(name, station);
    return station;
  }

  act(name: string, actions: readonly MeshAction[]): void {
    for (const action of actions) this.#perform(name, action);
  }

  /** Runs everything that is due by then. */
  advance(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const timers = [...this.stations].map(([name, { mesh }]) => ({
        name,
        at: mesh.nextDue() ?? Number.POSITIVE_INFINITY,
      }));
      const timer = timers.toSorted((a, b) => a.at - b.at)[0];
      const job = this.#queue.toSorted((a, b) => a.at - b.at || a.order - b.order)[0];
      const next = Math.min(timer?.at ?? Number.POSITIVE_INFINITY, job?.at ?? Number.POSITIVE_INFINITY);
      if (next > end) break;
      this.now = Math.max(this.now, next);
      if (job !== undefined && job.at <= next) {
        this.#queue = this.#queue.filter((other) => other !== job);
        job.run();
      } else if (timer !== undefined) this.act(timer.name, this.station(timer.name).mesh.poll(this.now));
    }
    this.now = end;
  }

  connect(from: string, to: string): void {
    this.handshakes += 1;
    this.station(from).links.add(to);
    this.station(to).links.add(from);
    this.act(from, this.station(from).mesh.connected(to, { creation: 1, dialled: true, mayBeOurs: true }, this.now));
    this.act(to, this.station(to).mesh.connected(from, { creation: 1, dialled: false, mayBeOurs: true }, this.now));
  }

  disconnect(a: string, b: string, reason = 'connection_closed'): void {
    if (!this.station(a).links.delete(b)) return;
    this.station(b).links.delete(a);
    this.act(a, this.station(a).mesh.lost(b, reason, this.now));
    this.act(b, this.station(b).mesh.lost(a, reason, this.now));
  }

  later(ms: number, run: () => void): void {
    this.#queue.push({ at: this.now + ms, order: this.#order++, run });
  }

  station(name: string): Station {
    return this.stations.get(name) as Station;
  }

  #perform(name: string, action: MeshAction): void {
    const station = this.station(name);
    if (action.do === 'up') station.events.push(`up ${action.kind} ${action.node}`);
    else if (action.do === 'down') station.events.push(`down ${action.reason} ${action.node}`);
    else if (action.do === 'send') this.#deliver(name, action.node, action.message);
    else this.later(3, () => this.#dialled(name, action.node));
  }

  #deliver(from: string, to: string, message: Term): void {
    this.later(1, () => {
      const target = this.stations.get(to);
      if (target?.links.has(from) === true) this.act(to, target.mesh.message(from, message, this.now));
    });
  }

  #dialled(from: string, to: string): void {
    const { mesh, links } = this.station(from);
    if (links.has(to)) {
      this.collisions += 1;
      this.act(from, mesh.dialDone(to, this.now));
    } else if (!this.stations.has(to) || this.cut.has([from, to].toSorted().join())) {
      this.act(from, mesh.failed(to, { fast: true, reason: 'refused' }, this.now));
    } else {
      this.connect(from, to);
      this.act(from, mesh.dialDone(to, this.now));
    }
  }
}

const name = (i: number): string => `n${String(i).padStart(2, '0')}@h`;

describe('the mesh', () => {
  test.each([5, 20])('needs one handshake per pair for %i nodes that join one seed', (size) => {
    const simulation = new SimulatedMesh();
    for (let i = 0; i < size; i++) simulation.add(name(i));
    for (let i = 1; i < size; i++)
      simulation.act(name(i), simulation.station(name(i)).mesh.seed([name(0)], simulation.now));
    simulation.advance(400);
    for (const { mesh } of simulation.stations.values()) expect(mesh.members()).toHaveLength(size - 1);
    expect(simulation.handshakes).toBe((size * (size - 1)) / 2);
    expect(simulation.collisions).toBe(0);
    simulation.advance(60_000);
    expect(simulation.handshakes).toBe((size * (size - 1)) / 2);
  });

  test('reports a node with a late hello as down and up again, so that the events alternate', () => {
    const options = { tool: false, acceptable: () => true, random: () => 0.5 };
    const mesh = new Mesh({ ...options, self: 'a@h' });
    const other = new Mesh({ ...options, self: 'b@h' });
    mesh.connected('b@h', { creation: 7, dialled: true, mayBeOurs: true }, 0);
    expect(mesh.poll(2_000)).toMatchObject([{ do: 'up', node: 'b@h', kind: 'foreign' }]);
    const [hello] = other.connected('a@h', { creation: 1, dialled: false, mayBeOurs: true }, 2_500);
    const { message } = hello as MeshAction & { do: 'send' };
    expect(mesh.message('b@h', message, 2_500)).toMatchObject([
      { do: 'down', node: 'b@h', kind: 'foreign', reason: 'replaced' },
      { do: 'up', node: 'b@h', kind: 'member', creation: 7 },
    ]);
    expect(mesh.message('b@h', message, 2_600)).toEqual([]);
  });

  test('redials a member whose new connection never comes up in place of the old one', () => {
    const options = { tool: false, acceptable: () => true, random: () => 0.5 };
    const mesh = new Mesh({ ...options, self: 'a@h' });
    mesh.connected('b@h', { creation: 7, dialled: false, mayBeOurs: true }, 0);
    const [hello] = new Mesh({ ...options, self: 'b@h' }).connected(
      'a@h',
      { creation: 1, dialled: true, mayBeOurs: true },
      0,
    );
    mesh.message('b@h', (hello as MeshAction & { do: 'send' }).message, 0);
    expect(mesh.lost('b@h', 'replaced', 1_000)).toEqual([
      { do: 'down', node: 'b@h', kind: 'member', reason: 'replaced' },
    ]);
    expect(mesh.poll(61_000)).toContainEqual({ do: 'dial', node: 'b@h' });
  });

  test('redials a learned node that is lost before its hello, ever more rarely, for 10 minutes', () => {
    const mesh = new Mesh({ self: 'a@h', tool: false, acceptable: () => true, random: () => 0.5 });
    expect(mesh.learn(['b@h'], 0)).toEqual([{ do: 'dial', node: 'b@h' }]);
    const dials: number[] = [];
    for (let now = 0; now < 700_000; now += 10) {
      const dialled = now === 0 || mesh.poll(now).some((action) => action.do === 'dial');
      if (!dialled) continue;
      dials.push(now);
      mesh.connected('b@h', { creation: 1, dialled: true, mayBeOurs: true }, now);
      mesh.lost('b@h', 'connection_closed', now);
    }
    expect(dials.slice(0, 4)).toEqual([0, 500, 1_500, 3_500]);
    expect(dials.length).toBeLessThan(50);
    expect(dials.at(-1)).toBeGreaterThan(590_000);
    expect(mesh.links([], 700_000)).toEqual([]);
  });

  test('forgets a node that only dialled and is lost before its hello', () => {
    const mesh = new Mesh({ self: 'a@h', tool: false, acceptable: () => true, random: () => 0.5 });
    mesh.connected('b@h', { creation: 1, dialled: false, mayBeOurs: true }, 0);
    mesh.lost('b@h', 'connection_closed', 5);
    expect(mesh.links([], 5)).toEqual([]);
  });

  test('is transitive: a node that joins one member joins all', () => {
    const simulation = new SimulatedMesh();
    for (const node of ['a@h', 'b@h', 'c@h']) simulation.add(node);
    simulation.act('a@h', simulation.station('a@h').mesh.seed(['b@h'], 0));
    simulation.act('b@h', simulation.station('b@h').mesh.seed(['c@h'], 0));
    simulation.advance(2_000);
    expect(simulation.station('c@h').mesh.members().toSorted()).toEqual(['a@h', 'b@h']);
  });

  test('recovers from a lost announcement by gossip within half a minute', () => {
    const simulation = new SimulatedMesh(Math.random);
    for (const node of ['a@h', 'b@h', 'c@h']) simulation.add(node);
    simulation.connect('a@h', 'b@h');
    simulation.advance(10);
    // c and a meet, but their greetings contain no names: b was away for a moment.
    simulation.disconnect('a@h', 'b@h', 'leave');
    simulation.connect('a@h', 'c@h');
    simulation.advance(10);
    simulation.connect('a@h', 'b@h');
    simulation.advance(30_000);
    expect(simulation.station('c@h').mesh.members().toSorted()).toEqual(['a@h', 'b@h']);
  });

  test('retries a lost member: the lower name soon, the other one later', () => {
    const simulation = new SimulatedMesh();
    for (const node of ['a@h', 'b@h']) simulation.add(node);
    simulation.connect('a@h', 'b@h');
    simulation.advance(10);
    simulation.disconnect('a@h', 'b@h');
    expect(simulation.station('a@h').mesh.nextDue()).toBe(simulation.now + 250);
    expect(simulation.station('b@h').mesh.nextDue()).toBe(simulation.now + 750);
    simulation.advance(300);
    expect(simulation.station('a@h').events).toEqual(['up member b@h', 'down connection_closed b@h', 'up member b@h']);
    expect(simulation.station('b@h').events).toEqual(['up member a@h', 'down connection_closed a@h', 'up member a@h']);
  });

  test('gives up a lost member after 10 minutes, a seed never', () => {
    const mesh = new SimulatedMesh().add('a@h').mesh;
    mesh.connected('b@h', { creation: 1, dialled: true, mayBeOurs: true }, 0);
    mesh.message('b@h', hello('b@h'), 1);
    mesh.lost('b@h', 'connection_closed', 10);
    const dials: Record<string, number[]> = { 'b@h': [], 's@h': [] };
    let now = 10;
    const perform = (actions: readonly MeshAction[]): void => {
      for (const action of actions) {
        if (action.do !== 'dial') continue;
        dials[action.node]?.push(now);
        perform(mesh.failed(action.node, { fast: true, reason: 'refused' }, now));
      }
    };
    perform(mesh.seed(['s@h'], now));
    for (; now < 3_600_000; now = Math.max(now + 1, mesh.nextDue() ?? now + 1_000)) perform(mesh.poll(now));
    expect(dials['b@h']?.at(-1)).toBeLessThan(10 * 60_000 + 20_000);
    const gaps = (dials['s@h'] ?? []).map((at, i, all) => at - (all[i - 1] ?? 0)).slice(1);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(5_010);
    expect(dials['s@h']?.length).toBeGreaterThan(700);
  });

  test('retries a name from discovery whenever it is reported again, and one from a member by its own schedule', () => {
    const mesh = new SimulatedMesh().add('a@h').mesh;
    const dials: number[] = [];
    let now = 0;
    const perform = (actions: readonly MeshAction[]): void => {
      for (const action of actions) {
        if (action.do !== 'dial') continue;
        dials.push(now);
        perform(mesh.failed(action.node, { fast: true, reason: 'refused' }, now));
      }
    };
    mesh.connected('c@h', { creation: 1, dialled: false, mayBeOurs: true }, now);
    const named = (): MeshAction[] => mesh.message('c@h', hello('c@h', false, ['b@h']), now);
    perform(named());
    for (; dials.length < 10; now += 250) perform(mesh.poll(now));
    const before = dials.length;
    perform(named());
    expect(dials).toHaveLength(before);
    for (let times = 1; times < 12; times++) {
      perform(mesh.learn(['b@h'], now));
      expect(dials).toHaveLength(before + times);
      for (const next = now + 5_000; now < next; now += 250) perform(mesh.poll(now));
    }
  });

  test('considers a lost member a member until it leaves or returns as something else', () => {
    const mesh = new SimulatedMesh().add('a@h').mesh;
    const kind = (): unknown => mesh.links([], 0)[0]?.kind;
    mesh.seed(['b@h'], 0);
    expect(kind()).toBeNull();
    mesh.connected('b@h', { creation: 1, dialled: true, mayBeOurs: true }, 1);
    expect(kind()).toBeNull();
    mesh.message('b@h', hello('b@h'), 2);
    mesh.lost('b@h', 'net_tick_timeout', 3);
    expect(kind()).toBe('member');
    mesh.connected('b@h', { creation: 1, dialled: true, mayBeOurs: true }, 4);
    expect(kind()).toBeNull();
    mesh.poll(2_004);
    expect(kind()).toBe('foreign');
    mesh.lost('b@h', 'connection_closed', 2_005);
    expect(kind()).toBeNull();
    mesh.connected('b@h', { creation: 2, dialled: true, mayBeOurs: true }, 2_006);
    mesh.message('b@h', hello('b@h'), 2_007);
    mesh.message('b@h', tuple(atom('bye'), 1, atom('b@h')), 2_008);
    mesh.lost('b@h', 'connection_closed', 2_009);
    expect(kind()).toBeNull();
  });

  test('waits longer after a failure that a retry would not fix', () => {
    const mesh = new SimulatedMesh().add('a@h').mesh;
    mesh.connected('b@h', { creation: 1, dialled: true, mayBeOurs: true }, 0);
    mesh.message('b@h', hello('b@h'), 1);
    mesh.lost('b@h', 'connection_closed', 10);
    mesh.poll(300);
    mesh.failed('b@h', { fast: false, reason: 'refused' }, 300);
    expect(mesh.nextDue()).toBe(15_300);
  });

  test('does not redial a node that shut down cleanly, unless it is a seed', () => {
    for (const seed of [false, true]) {
      const simulation = new SimulatedMesh();
      for (const node of ['a@h', 'b@h']) simulation.add(node);
      if (seed) simulation.act('a@h', simulation.station('a@h').mesh.seed(['b@h'], 0));
      else simulation.connect('a@h', 'b@h');
      simulation.advance(20);
      simulation.act(
        'a@h',
        simulation.station('a@h').mesh.message('b@h', simulation.station('b@h').mesh.bye(), simulation.now),
      );
      simulation.stations.delete('b@h');
      simulation.station('a@h').links.delete('b@h');
      simulation.act('a@h', simulation.station('a@h').mesh.lost('b@h', 'connection_closed', simulation.now));
      expect(simulation.station('a@h').events).toEqual(['up member b@h', 'down leave b@h']);
      const due = simulation.station('a@h').mesh.nextDue();
      expect(due !== undefined && due < simulation.now + 1_000).toBe(seed);
    }
  });

  test('recognises a foreign node by its silence, and a tool by its hello', () => {
    const simulation = new SimulatedMesh();
    const { mesh, events } = simulation.add('a@h');
    mesh.connected('erl@h', { creation: 1, dialled: false, mayBeOurs: true }, 0);
    expect(mesh.kindOf('erl@h')).toBeUndefined();
    simulation.act('a@h', mesh.poll(mesh.nextDue() as number));
    simulation.act('a@h', mesh.connected('c@h', { creation: 1, dialled: false, mayBeOurs: false }, 2_000));
    mesh.connected('ctl@h', { creation: 1, dialled: false, mayBeOurs: true }, 2_000);
    simulation.act('a@h', mesh.message('ctl@h', hello('ctl@h', true, ['evil@h']), 2_001));
    expect(events).toEqual(['up foreign erl@h', 'up foreign c@h', 'up tool ctl@h']);
    expect(mesh.members()).toEqual([]);
    simulation.act('a@h', mesh.lost('ctl@h', 'connection_closed', 2_002));
    simulation.act('a@h', mesh.lost('erl@h', 'connection_closed', 2_002));
    expect(events.slice(3)).toEqual(['down connection_closed ctl@h', 'down connection_closed erl@h']);
    expect(mesh.nextDue()).toBeUndefined();
  });

  test('has at most 128 dials in progress and continues when one ends', () => {
    const mesh = new SimulatedMesh().add('a@h').mesh;
    const many = Array.from({ length: 300 }, (_, i) => `b${i}@h`);
    expect(mesh.seed(many, 0).filter((action) => action.do === 'dial')).toHaveLength(128);
    expect(mesh.nextDue()).toBeUndefined();
    expect(
      mesh.failed('b0@h', { fast: true, reason: 'refused' }, 5).filter((action) => action.do === 'dial'),
    ).toHaveLength(1);
  });

  test('dials all names in turn, even when many of them are slow to fail', () => {
    const mesh = new Mesh({ self: 'a@h', tool: false, acceptable: () => true, random: () => 0.5 });
    const names = Array.from({ length: 400 }, (_, i) => `n${i}@h`);
    const dialled = new Set<string>();
    let hanging: string[] = [];
    const take = (actions: readonly MeshAction[]): void => {
      for (const { node } of actions.filter((action) => action.do === 'dial')) {
        dialled.add(node);
        hanging.push(node);
      }
    };
    take(mesh.seed(names, 0));
    for (let now = 10_000; now <= 40_000; now += 10_000) {
      const failed = hanging;
      hanging = [];
      for (const node of failed) take(mesh.failed(node, { fast: true, reason: 'refused' }, now));
    }
    expect(names.filter((name) => !dialled.has(name))).toEqual([]);
  });

  test('does not dial the other address of a node that is already a member', () => {
    const mesh = new Mesh({ self: 'a@10.0.0.1', tool: false, acceptable: () => true, random: () => 0.5 });
    const found = ['b@10.0.0.2', 'b@fd00::2'];
    const dialled = (actions: readonly MeshAction[]): string[] =>
      actions.filter((action) => action.do === 'dial').map(({ node }) => node);
    expect(dialled(mesh.learn(found, 0))).toEqual(found);
    mesh.connected('b@10.0.0.2', { creation: 1, dialled: true, mayBeOurs: true }, 1);
    mesh.message('b@10.0.0.2', hello('b@10.0.0.2'), 2);
    const other = { fast: false, reason: 'it calls itself b@10.0.0.2', calledItself: 'b@10.0.0.2' };
    mesh.failed('b@fd00::2', other, 3);
    for (let now = 5_000; now < 60_000; now += 5_000)
      expect(dialled([...mesh.learn(found, now), ...mesh.poll(now + 1_000)])).toEqual([]);

    mesh.lost('b@10.0.0.2', 'tick_timeout', 60_000);
    expect(dialled(mesh.learn(found, 61_000))).toContain('b@fd00::2');
  });

  test('dials a node again that a member names, although its address led to that member before', () => {
    const mesh = new Mesh({ self: 'a@h', tool: false, acceptable: () => true, random: () => 0.5 });
    const dialled = (actions: readonly MeshAction[]): string[] =>
      actions.filter((action) => action.do === 'dial').map(({ node }) => node);
    mesh.learn(['b@h'], 0);
    mesh.connected('b@h', { creation: 1, dialled: true, mayBeOurs: true }, 1);
    expect(dialled(mesh.message('b@h', hello('b@h', false, ['c@h']), 2))).toEqual(['c@h']);
    mesh.failed('c@h', { fast: false, reason: 'it calls itself b@h', calledItself: 'b@h' }, 3);
    expect(dialled(mesh.poll(9_000))).toEqual([]);
    expect(dialled(mesh.message('b@h', hello('b@h', false, ['c@h']), 10_000))).toEqual(['c@h']);
  });

  test('checks announced names before it dials them', () => {
    const mesh = new SimulatedMesh().add('a@h').mesh;
    mesh.connected('b@h', { creation: 1, dialled: false, mayBeOurs: true }, 0);
    const actions = mesh.message('b@h', hello('b@h', false, ['good@h', 'bad', 'a@h', 'b@h']), 1);
    expect(actions.filter((action) => action.do === 'dial').map((action) => action.node)).toEqual(['good@h']);
    expect(mesh.message('b@h', hello('c@h', false, ['x@h']), 2)).toEqual([]);
  });

  test('accepts any term as a message without an exception', () => {
    const part = fc.oneof(
      fc.integer(),
      fc.constantFrom<Term>(1, atom('hello'), atom('b@h'), atomMap({ hidden: true }), [atom('x@h'), 5], null, 'x'),
    );
    fc.assert(
      fc.property(fc.constantFrom('hello', 'peers', 'bye', 'other'), fc.array(part, { maxLength: 5 }), (tag, parts) => {
        const mesh = new SimulatedMesh().add('a@h').mesh;
        mesh.connected('b@h', { creation: 1, dialled: false, mayBeOurs: true }, 0);
        mesh.message('b@h', tuple(atom(tag), ...parts), 1);
        mesh.message('b@h', tuple(atom(tag), 1, ...parts), 1);
        mesh.message('nobody@h', tuple(atom(tag), 1, ...parts), 1);
        mesh.poll(5_000);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('shows all nodes each other after any cuts and heals, with alternating events', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(4), fc.nat(4), fc.boolean(), fc.nat(3_000)), { maxLength: 12 }), (steps) => {
        const simulation = new SimulatedMesh();
        for (let i = 0; i < 5; i++) simulation.add(name(i));
        for (let i = 1; i < 5; i++) simulation.act(name(i), simulation.station(name(i)).mesh.seed([name(0)], 0));
        for (const [a, b, sever, wait] of steps) {
          const key = [name(a), name(b)].toSorted().join();
          if (sever && a !== b) {
            simulation.cut.add(key);
            simulation.disconnect(name(a), name(b));
          } else simulation.cut.delete(key);
          simulation.advance(wait);
        }
        simulation.cut.clear();
        simulation.advance(40_000);
        for (const { mesh, events } of simulation.stations.values()) {
          expect(mesh.members()).toHaveLength(4);
          for (let i = 0; i < 5; i++) {
            const about = events.filter((event) => event.endsWith(name(i))).map((event) => event.split(' ')[0]);
            about.forEach((what, n) => expect(what).toBe(n % 2 === 0 ? 'up' : 'down'));
          }
        }
      }),
      { numRuns: fuzzRuns(100) },
    );
  });
});

function hello(node: string, hidden = false, peers: string[] = []): Term {
  return tuple(
    atom('hello'),
    1,
    atom(node),
    atomMap(hidden ? { hidden: true } : {}),
    peers.map((remote) => atom(remote)),
  );
}
