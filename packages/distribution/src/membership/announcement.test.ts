import { afterEach, describe, expect, test } from '@jest/globals';
import { atom, atomMap, type Term, tuple } from '@bloom/etf';
import { fuzzRuns, until } from '@bloom/time/testing';
import fc from 'fast-check';
import { startMapper } from '../testing/erlang.js';
import { TestNode } from '../testing/test-node.js';
import { announcementOf, capabilitiesOf, commonProtocol, type Protocols, type Spoken } from './announcement.js';
import type { NodeRefused } from './link-state.js';
import { Mesh, type MeshAction } from './mesh.js';

const RELEASE = '1.2.0-rc.1+build';

describe('announcements', () => {
  test('reads an announcement as it was written', () => {
    const caps = atomMap(capabilitiesOf({ release: RELEASE, protocols: { min: 2, max: 7 } }, 12.6));
    expect(announcementOf(caps)).toEqual({ release: RELEASE, protocols: { min: 2, max: 7 }, upMs: 13 });
  });

  test('reads a missing announcement as protocol 1, whatever else the hello contains', () => {
    for (const caps of [atomMap({}), atomMap({ hidden: true, colour: 'red' }), null, 5, []] satisfies Term[]) {
      expect(announcementOf(caps)).toEqual({
        release: null,
        protocols: { min: 1, max: 1 },
        upMs: Number.POSITIVE_INFINITY,
      });
    }
  });

  test.each<[string, { [name: string]: Term }]>([
    ['no range', { protocol: 1 }],
    ['a range of three', { protocol: tuple(1, 2, 3) }],
    ['a range that is upside down', { protocol: tuple(2, 1) }],
    ['a number below 1', { protocol: tuple(0, 1) }],
    ['a number beyond 65,535', { protocol: tuple(1, 65_536) }],
    ['a number beyond all bounds', { protocol: tuple(1, 2n ** 200n) }],
    ['a fraction', { protocol: tuple(1, 1.5) }],
    ['words for numbers', { protocol: tuple('1', atom('2')) }],
    ['no release', { release: atom('nothing') }],
    ['a release of many characters', { release: 'x'.repeat(65) }],
    ['a release that would break a line of the log', { release: '1.0\nerror' }],
    ['a time below 0', { up: -1 }],
    ['no time', { up: 'long' }],
  ])('treats an announcement with %s as invalid', (_what, wrong) => {
    const right = capabilitiesOf({ release: RELEASE, protocols: { min: 1, max: 1 } }, 0);
    expect(announcementOf(atomMap({ ...right, ...wrong }))).toBeUndefined();
  });

  test('reads any terms as numbers in range or as no announcement', () => {
    const part = fc.oneof(
      fc.integer(),
      fc.string(),
      fc.constantFrom<Term>(null, tuple(1, 1), tuple(5, 3), tuple(), [1, 2], 2n ** 80n, tuple(1, tuple(1, 1))),
      fc.tuple(fc.integer(), fc.integer()).map(([min, max]) => tuple(min, max)),
    );
    fc.assert(
      fc.property(part, part, part, (protocol, release, up) => {
        const announced = announcementOf(atomMap({ protocol, release, up } as { [name: string]: Term }));
        if (announced === undefined) return;
        expect(announced.protocols.min).toBeGreaterThanOrEqual(1);
        expect(announced.protocols.max).toBeLessThanOrEqual(65_535);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});

test('takes the highest protocol that both nodes speak as the common one', () => {
  const range = (min: number, max: number): Protocols => ({ min, max });
  expect(commonProtocol(range(1, 3), range(2, 9))).toBe(3);
  expect(commonProtocol(range(1, 1), range(1, 65_535))).toBe(1);
  expect(commonProtocol(range(1, 2), range(3, 4))).toBeUndefined();
  expect(commonProtocol(range(5, 6), range(1, 4))).toBeUndefined();
});

describe('the mesh', () => {
  const meshOf = (self: string, release: string, protocols: Protocols): Mesh =>
    new Mesh({
      self,
      tool: false,
      acceptable: () => true,
      random: () => 0.5,
      spoken: { release, protocols, startedAt: 0 },
    });
  const helloOf = (mesh: Mesh, now: number): Term => {
    const [hello] = mesh.connected('x@h', { creation: 1, dialled: true, mayBeOurs: true }, now);
    return (hello as MeshAction & { do: 'send' }).message;
  };
  const hello = (node: string, caps: { [name: string]: Term }): Term =>
    tuple(atom('hello'), 1, atom(node), atomMap(caps), []);
  const old = (node: string): Mesh => new Mesh({ self: node, tool: false, acceptable: () => true, random: () => 0.5 });
  const connect = (mesh: Mesh, node: string, now: number): unknown =>
    mesh.connected(node, { creation: 1, dialled: true, mayBeOurs: true }, now);

  test('treats a node that announces nothing as a member that speaks protocol 1', () => {
    const mesh = meshOf('a@h', '2.0.0', { min: 1, max: 4 });
    connect(mesh, 'b@h', 0);
    expect(mesh.message('b@h', helloOf(old('b@h'), 0), 1)).toMatchObject([{ do: 'up', node: 'b@h', kind: 'member' }]);
    expect(mesh.announced('b@h')).toMatchObject({ release: null, protocols: { min: 1, max: 1 } });
  });

  test('lets a node that knows no announcements understand a hello that contains one', () => {
    const mesh = old('a@h');
    connect(mesh, 'b@h', 0);
    const news = helloOf(meshOf('b@h', '2.0.0', { min: 7, max: 9 }), 0);
    expect(mesh.message('b@h', news, 1)).toMatchObject([{ do: 'up', node: 'b@h', kind: 'member' }]);
  });

  test('keeps the first announcement of a connection, even when it comes late', () => {
    const mesh = meshOf('a@h', '2.0.0', { min: 1, max: 4 });
    connect(mesh, 'b@h', 0);
    mesh.poll(2_000);
    mesh.message('b@h', helloOf(meshOf('b@h', '1.0.0', { min: 1, max: 2 }), 0), 3_000);
    mesh.message('b@h', helloOf(meshOf('b@h', '9.0.0', { min: 9, max: 9 }), 0), 3_001);
    expect(mesh.members()).toEqual(['b@h']);
    expect(mesh.announced('b@h')).toMatchObject({ release: '1.0.0' });
  });

  test('refuses a node without a common protocol, and tells the younger of the two to end', () => {
    const [older, younger] = [meshOf('a@h', '1.0.0', { min: 1, max: 1 }), meshOf('b@h', '9.0.0', { min: 9, max: 9 })];
    connect(older, 'b@h', 5_000);
    connect(younger, 'a@h', 0);
    expect(older.message('b@h', helloOf(younger, 0), 5_001)).toEqual([
      {
        do: 'refuse',
        node: 'b@h',
        joins: false,
        why:
          'b@h of release 9.0.0 speaks protocol 9, this node of release 1.0.0 speaks protocol 1: they cannot be members of one ' +
          'cluster; docs/guide/upgrading.md says which releases can',
      },
    ]);
    expect(younger.message('a@h', helloOf(older, 5_000), 1)).toMatchObject([
      { do: 'refuse', node: 'a@h', joins: true },
    ]);
    expect(older.members()).toEqual([]);
  });

  test('learns no names from a node that it refuses', () => {
    const mesh = meshOf('a@h', '1.0.0', { min: 1, max: 1 });
    connect(mesh, 'b@h', 0);
    const caps = atomMap(capabilitiesOf({ release: '9.0.0', protocols: { min: 9, max: 9 } }, 1));
    const actions = mesh.message('b@h', tuple(atom('hello'), 1, atom('b@h'), caps, [atom('c@h')]), 1);
    expect(actions.map((action) => action.do)).toEqual(['refuse']);
  });

  test.each<[string, (mesh: Mesh) => void, number]>([
    ['that has had a member', (mesh) => mesh.message('m@h', hello('m@h', {}), 1), 1_000],
    ['that has run for a minute', () => undefined, 60_000],
  ])('never ends a node %s', (_what, prepare, now) => {
    const mesh = meshOf('a@h', '1.0.0', { min: 1, max: 1 });
    connect(mesh, 'm@h', 0);
    prepare(mesh);
    connect(mesh, 'b@h', now);
    const caps = capabilitiesOf({ release: '9.0.0', protocols: { min: 9, max: 9 } }, 10 ** 12);
    expect(mesh.message('b@h', hello('b@h', caps), now)).toMatchObject([{ do: 'refuse', joins: false }]);
  });

  test('refuses a node with an invalid announcement, but never ends because of one', () => {
    const mesh = meshOf('a@h', '1.0.0', { min: 1, max: 1 });
    connect(mesh, 'b@h', 0);
    expect(mesh.message('b@h', hello('b@h', { protocol: 'all' }), 1)).toMatchObject([
      {
        do: 'refuse',
        joins: false,
        why: 'b@h announces no readable protocol, and this node of release 1.0.0 speaks protocol 1',
      },
    ]);
  });
});

function speaking(release: string, max = 1, min = 1): Spoken {
  return { release, protocols: { min, max } };
}

describe('nodes of different releases', () => {
  const cleanUps: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
  });
  async function start(alive: string, mapperPort: number, spoken?: Spoken): Promise<TestNode> {
    const started = await TestNode.start(`${alive}@127.0.0.1`, mapperPort, { announceForeign: false, spoken });
    cleanUps.push(() => started.stop());
    return started;
  }
  async function mapper(): Promise<number> {
    const started = await startMapper('ours');
    cleanUps.push(() => started.stop());
    return started.port;
  }

  test("learns each member's protocol versions and uses those that both sides speak", async () => {
    const port = await mapper();
    const [a, b, c] = [
      await start('a', port, speaking('2.0.0', 3)),
      await start('b', port, speaking('1.0.0', 2)),
      await start('c', port),
    ];
    for (const { node } of [b, c]) node.seed(['a@127.0.0.1']);
    await until(() => [a, b, c].every(({ node }) => node.nodes().length === 2));
    const speaks = (asked: TestNode, { node }: TestNode): boolean[] =>
      [1, 2, 3, 4].map((protocol) => asked.node.speaks(node.name, protocol));
    expect(speaks(a, a)).toEqual([true, true, true, false]);
    expect(speaks(a, b)).toEqual([true, true, false, false]);
    expect(speaks(b, a)).toEqual([true, true, false, false]);
    expect(speaks(a, c)).toEqual([true, false, false, false]);
    expect(speaks(c, a)).toEqual([true, false, false, false]);
    expect(a.node.speaks('nobody@127.0.0.1', 1)).toBe(false);
    expect(a.node.links().map(({ announced }) => announced?.release)).toEqual(expect.arrayContaining(['1.0.0', null]));
  });

  test.each<[string, Spoken]>([
    ['protocols out of range', speaking('1.0.0', 1_000_000_000, 0)],
    ['an invalid release', speaking('x\n'.repeat(100_000))],
    ['only protocols that no one speaks', speaking('99.0.0', 99, 99)],
  ])('keeps members connected and running when a node announces %s', async (_what, spoken) => {
    const port = await mapper();
    const [a, b] = [await start('a', port, speaking('1.0.0')), await start('b', port, speaking('1.0.0'))];
    a.node.seed(['b@127.0.0.1']);
    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    const joins: boolean[] = [];
    for (const { node } of [a, b]) node.subscribe({ refused: (event) => joins.push(event.joins) });
    const odd = await start('odd', port, spoken);
    odd.node.seed(['a@127.0.0.1', 'b@127.0.0.1']);
    await until(() => joins.length >= 4);
    expect(joins).not.toContain(true);
    expect(a.node.nodes()).toEqual(['b@127.0.0.1']);
    expect(b.node.nodes()).toEqual(['a@127.0.0.1']);
    expect(a.events).toHaveLength(1);
    expect(b.events).toHaveLength(1);
  });

  test('makes nodes without a common protocol no members, and says why in their link states', async () => {
    const port = await mapper();
    const [a, b] = [await start('a', port, speaking('1.0.0')), await start('b', port, speaking('9.0.0', 99, 99))];
    const refused: NodeRefused[] = [];
    b.node.subscribe({ refused: (event) => refused.push(event) });
    b.node.seed(['a@127.0.0.1']);
    await until(() => refused.length > 0);
    expect(refused[0]?.node).toBe('a@127.0.0.1');
    await until(() =>
      b.node.links().some(({ lastFailure }) => lastFailure?.reason.includes('of release 1.0.0') === true),
    );
    expect(a.node.nodes()).toEqual([]);
    expect(b.node.nodes()).toEqual([]);
    expect(b.events).toEqual([]);
  });
});
