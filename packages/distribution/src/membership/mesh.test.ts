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

class World {
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
    for (const action of actions) this.#carryOut(name, action);
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
    this.act(from, this.station(from).mesh.connected(to, 1, true, true, this.now));
    this.act(to, this.station(to).mesh.connected(from, 1, false, true, this.now));
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

  #carryOut(name: string, action: MeshAction): void {
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
      this.act(from, mesh.failed(to, true, this.now));
    } else {
      this.connect(from, to);
      this.act(from, mesh.dialDone(to, this.now));
    }
  }
}

const name = (i: number): string => `n${String(i).padStart(2, '0')}@h`;

describe('the mesh', () => {
  test.each([5, 20])('%i nodes that join one seed need one handshake per pair', (size) => {
    const world = new World();
    for (let i = 0; i < size; i++) world.add(name(i));
    for (let i = 1; i < size; i++) world.act(name(i), world.station(name(i)).mesh.seed([name(0)], world.now));
    world.advance(400);
    for (const { mesh } of world.stations.values()) expect(mesh.members()).toHaveLength(size - 1);
    expect(world.handshakes).toBe((size * (size - 1)) / 2);
    expect(world.collisions).toBe(0);
    world.advance(60_000);
    expect(world.handshakes).toBe((size * (size - 1)) / 2);
  });

  test('reports a node with a late hello as down and up again, so that the events alternate', () => {
    const options = { tool: false, acceptable: () => true, random: () => 0.5 };
    const mesh = new Mesh({ ...options, self: 'a@h' });
    const other = new Mesh({ ...options, self: 'b@h' });
    mesh.connected('b@h', 7, true, true, 0);
    expect(mesh.poll(2_000)).toMatchObject([{ do: 'up', node: 'b@h', kind: 'foreign' }]);
    const [hello] = other.connected('a@h', 1, false, true, 2_500);
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
    mesh.connected('b@h', 7, false, true, 0);
    const [hello] = new Mesh({ ...options, self: 'b@h' }).connected('a@h', 1, true, true, 0);
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
      mesh.connected('b@h', 1, true, true, now);
      mesh.lost('b@h', 'connection_closed', now);
    }
    expect(dials.slice(0, 4)).toEqual([0, 500, 1_500, 3_500]);
    expect(dials.length).toBeLessThan(50);
    expect(dials.at(-1)).toBeGreaterThan(590_000);
    expect(mesh.links([], 700_000)).toEqual([]);
  });

  test('forgets a node that only dialled and is lost before its hello', () => {
    const mesh = new Mesh({ self: 'a@h', tool: false, acceptable: () => true, random: () => 0.5 });
    mesh.connected('b@h', 1, false, true, 0);
    mesh.lost('b@h', 'connection_closed', 5);
    expect(mesh.links([], 5)).toEqual([]);
  });

  test('is transitive: a node that joins one member joins all', () => {
    const world = new World();
    for (const node of ['a@h', 'b@h', 'c@h']) world.add(node);
    world.act('a@h', world.station('a@h').mesh.seed(['b@h'], 0));
    world.act('b@h', world.station('b@h').mesh.seed(['c@h'], 0));
    world.advance(2_000);
    expect(world.station('c@h').mesh.members().toSorted()).toEqual(['a@h', 'b@h']);
  });

  test('recovers from a lost announcement by gossip within half a minute', () => {
    const world = new World(Math.random);
    for (const node of ['a@h', 'b@h', 'c@h']) world.add(node);
    world.connect('a@h', 'b@h');
    world.advance(10);
    // c and a meet, but their greetings contain no names: b was away for a moment.
    world.disconnect('a@h', 'b@h', 'leave');
    world.connect('a@h', 'c@h');
    world.advance(10);
    world.connect('a@h', 'b@h');
    world.advance(30_000);
    expect(world.station('c@h').mesh.members().toSorted()).toEqual(['a@h', 'b@h']);
  });

  test('retries a lost member: the lower name soon, the other one later', () => {
    const world = new World();
    for (const node of ['a@h', 'b@h']) world.add(node);
    world.connect('a@h', 'b@h');
    world.advance(10);
    world.disconnect('a@h', 'b@h');
    expect(world.station('a@h').mesh.nextDue()).toBe(world.now + 250);
    expect(world.station('b@h').mesh.nextDue()).toBe(world.now + 750);
    world.advance(300);
    expect(world.station('a@h').events).toEqual(['up member b@h', 'down connection_closed b@h', 'up member b@h']);
    expect(world.station('b@h').events).toEqual(['up member a@h', 'down connection_closed a@h', 'up member a@h']);
  });

  test('gives up a lost member after 10 minutes, a seed never', () => {
    const mesh = new World().add('a@h').mesh;
    mesh.connected('b@h', 1, true, true, 0);
    mesh.message('b@h', hello('b@h'), 1);
    mesh.lost('b@h', 'connection_closed', 10);
    const dials: Record<string, number[]> = { 'b@h': [], 's@h': [] };
    let now = 10;
    const carryOut = (actions: readonly MeshAction[]): void => {
      for (const action of actions) {
        if (action.do !== 'dial') continue;
        dials[action.node]?.push(now);
        carryOut(mesh.failed(action.node, true, now));
      }
    };
    carryOut(mesh.seed(['s@h'], now));
    for (; now < 3_600_000; now = Math.max(now + 1, mesh.nextDue() ?? now + 1_000)) carryOut(mesh.poll(now));
    expect(dials['b@h']?.at(-1)).toBeLessThan(10 * 60_000 + 20_000);
    const gaps = (dials['s@h'] ?? []).map((at, i, all) => at - (all[i - 1] ?? 0)).slice(1);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(5_010);
    expect(dials['s@h']?.length).toBeGreaterThan(700);
  });

  test('retries a name from discovery whenever it is reported again, and one from a member by its own schedule', () => {
    const mesh = new World().add('a@h').mesh;
    const dials: number[] = [];
    let now = 0;
    const carryOut = (actions: readonly MeshAction[]): void => {
      for (const action of actions) {
        if (action.do !== 'dial') continue;
        dials.push(now);
        carryOut(mesh.failed(action.node, true, now));
      }
    };
    mesh.connected('c@h', 1, false, true, now);
    const named = (): MeshAction[] => mesh.message('c@h', hello('c@h', false, ['b@h']), now);
    carryOut(named());
    for (; dials.length < 10; now += 250) carryOut(mesh.poll(now));
    const before = dials.length;
    carryOut(named());
    expect(dials).toHaveLength(before);
    for (let times = 1; times < 12; times++) {
      carryOut(mesh.learn(['b@h'], now));
      expect(dials).toHaveLength(before + times);
      for (const next = now + 5_000; now < next; now += 250) carryOut(mesh.poll(now));
    }
  });

  test('considers a lost member a member until it leaves or returns as something else', () => {
    const mesh = new World().add('a@h').mesh;
    const kind = (): unknown => mesh.links([], 0)[0]?.kind;
    mesh.seed(['b@h'], 0);
    expect(kind()).toBeNull();
    mesh.connected('b@h', 1, true, true, 1);
    expect(kind()).toBeNull();
    mesh.message('b@h', hello('b@h'), 2);
    mesh.lost('b@h', 'net_tick_timeout', 3);
    expect(kind()).toBe('member');
    mesh.connected('b@h', 1, true, true, 4);
    expect(kind()).toBeNull();
    mesh.poll(2_004);
    expect(kind()).toBe('foreign');
    mesh.lost('b@h', 'connection_closed', 2_005);
    expect(kind()).toBeNull();
    mesh.connected('b@h', 2, true, true, 2_006);
    mesh.message('b@h', hello('b@h'), 2_007);
    mesh.message('b@h', tuple(atom('bye'), 1, atom('b@h')), 2_008);
    mesh.lost('b@h', 'connection_closed', 2_009);
    expect(kind()).toBeNull();
  });

  test('waits longer after a failure that a retry would not fix', () => {
    const mesh = new World().add('a@h').mesh;
    mesh.connected('b@h', 1, true, true, 0);
    mesh.message('b@h', hello('b@h'), 1);
    mesh.lost('b@h', 'connection_closed', 10);
    mesh.poll(300);
    mesh.failed('b@h', false, 300);
    expect(mesh.nextDue()).toBe(15_300);
  });

  test('does not redial a node that left in an orderly way, unless it is a seed', () => {
    for (const seed of [false, true]) {
      const world = new World();
      for (const node of ['a@h', 'b@h']) world.add(node);
      if (seed) world.act('a@h', world.station('a@h').mesh.seed(['b@h'], 0));
      else world.connect('a@h', 'b@h');
      world.advance(20);
      world.act('a@h', world.station('a@h').mesh.message('b@h', world.station('b@h').mesh.bye(), world.now));
      world.stations.delete('b@h');
      world.station('a@h').links.delete('b@h');
      world.act('a@h', world.station('a@h').mesh.lost('b@h', 'connection_closed', world.now));
      expect(world.station('a@h').events).toEqual(['up member b@h', 'down leave b@h']);
      const due = world.station('a@h').mesh.nextDue();
      expect(due !== undefined && due < world.now + 1_000).toBe(seed);
    }
  });

  test('recognises a foreign node by its silence, and a tool by its hello', () => {
    const world = new World();
    const { mesh, events } = world.add('a@h');
    mesh.connected('erl@h', 1, false, true, 0);
    expect(mesh.kindOf('erl@h')).toBeUndefined();
    world.act('a@h', mesh.poll(mesh.nextDue() as number));
    world.act('a@h', mesh.connected('c@h', 1, false, false, 2_000));
    mesh.connected('ctl@h', 1, false, true, 2_000);
    world.act('a@h', mesh.message('ctl@h', hello('ctl@h', true, ['evil@h']), 2_001));
    expect(events).toEqual(['up foreign erl@h', 'up foreign c@h', 'up tool ctl@h']);
    expect(mesh.members()).toEqual([]);
    world.act('a@h', mesh.lost('ctl@h', 'connection_closed', 2_002));
    world.act('a@h', mesh.lost('erl@h', 'connection_closed', 2_002));
    expect(events.slice(3)).toEqual(['down connection_closed ctl@h', 'down connection_closed erl@h']);
    expect(mesh.nextDue()).toBeUndefined();
  });

  test('has at most 16 dials in progress and continues when one ends', () => {
    const mesh = new World().add('a@h').mesh;
    const many = Array.from({ length: 40 }, (_, i) => `b${i}@h`);
    expect(mesh.seed(many, 0).filter((action) => action.do === 'dial')).toHaveLength(16);
    expect(mesh.nextDue()).toBeUndefined();
    expect(mesh.failed('b0@h', true, 5).filter((action) => action.do === 'dial')).toHaveLength(1);
  });

  test('dials all names in turn, even when many of them are slow to fail', () => {
    const mesh = new Mesh({ self: 'a@h', tool: false, acceptable: () => true, random: () => 0.5 });
    const names = Array.from({ length: 60 }, (_, i) => `n${i}@h`);
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
      for (const node of failed) take(mesh.failed(node, true, now));
    }
    expect(names.filter((name) => !dialled.has(name))).toEqual([]);
  });

  test('checks announced names before it dials them', () => {
    const mesh = new World().add('a@h').mesh;
    mesh.connected('b@h', 1, false, true, 0);
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
        const mesh = new World().add('a@h').mesh;
        mesh.connected('b@h', 1, false, true, 0);
        mesh.message('b@h', tuple(atom(tag), ...parts), 1);
        mesh.message('b@h', tuple(atom(tag), 1, ...parts), 1);
        mesh.message('nobody@h', tuple(atom(tag), 1, ...parts), 1);
        mesh.poll(5_000);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('after any cuts and heals all nodes see each other, with alternating events', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(4), fc.nat(4), fc.boolean(), fc.nat(3_000)), { maxLength: 12 }), (steps) => {
        const world = new World();
        for (let i = 0; i < 5; i++) world.add(name(i));
        for (let i = 1; i < 5; i++) world.act(name(i), world.station(name(i)).mesh.seed([name(0)], 0));
        for (const [a, b, sever, wait] of steps) {
          const key = [name(a), name(b)].toSorted().join();
          if (sever && a !== b) {
            world.cut.add(key);
            world.disconnect(name(a), name(b));
          } else world.cut.delete(key);
          world.advance(wait);
        }
        world.cut.clear();
        world.advance(40_000);
        for (const { mesh, events } of world.stations.values()) {
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
