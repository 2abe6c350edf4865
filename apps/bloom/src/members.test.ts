/**
 * A member, or an Erlang shell with the cookie, sends arbitrary messages to every actor that it can name or has a ref
 * to.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  actor,
  connectActors,
  openActorSystem,
  takes,
  text,
  unchecked,
  type ActorRef,
  type ActorSystem,
  type RemoteActors,
  type Shapes,
} from '@bloom/actors';
import type { DistributionNode } from '@bloom/distribution';
import { Erlang, hasErlang } from '@bloom/distribution/testing';
import { atom, Pid, tuple, type Term } from '@bloom/etf';
import { InspectionClient } from '@bloom/inspection';
import { createLogger, silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { fuzzRuns, until } from '@bloom/time/testing';
import fc from 'fast-check';
import { startTestNode, type TestNode } from './testing/test-node.js';

const COOKIE = 'a_cookie_for_the_tests_of_members';
const NODE = 'a@127.0.0.1';
const NAMES = ['rooms', 'rooms_node', 'files_node', 'events_node', 'inspection', 'rex', 'net_kernel', 'bloom_mesh'];
/** Excludes those that end a room or a websocket when well-formed. */
const TYPES = `
  create load reserve withdraw claim unclaim snapshot announce roomRef listRooms viewRoom open read recordings startOf
  startsOf began notification metrics data interest ask subscribe unsubscribe getRoom updateRoom addPeer updatePeer
  muteTrack removeTrack sendMessage attach openRelay openSession askSession addComponent removeComponent dial subscribeComponent
  hangUp fromPeer fromComponent fromMedia fromData socketDown peerDown peerless peerOverdue attached detached input
  clientEvent bind ping close sweep setPublishes deliver negotiated sessionTimer metadataTick outboxTick describe
  relayUnused offerRoom takeRoom keepRoom moveState takerOf flush pulse mirrorRoom forgetRoom vote hasMirror __proto__
`
  .trim()
  .split(/\s+/);
const KEYS = `
  node rooms created removed roomId claimant owner creation reservation config seen request file kind id ids fileName
  start length report notification type v tool timeoutMs stream sink peerId changes permissions metadata trackId muted
  to topic data options requestId socket client replaces sessionId componentId origins phoneNumber connection event
  reason text input path peer ref $req $omitted forwardedTracks createdAt epoch move snapshot track publish subscribe dataEvents maxPeers
  settled members took epoch
`
  .trim()
  .split(/\s+/);

type Attach = { socket: ActorRef<Door>; peerId: string; client: string; replaces: null };
type Door = {
  attach: (message: Attach) => { result: string; peer?: ActorRef<Door>; by?: ActorRef<Door> };
  roomRef: (message: { roomId: string }) => ActorRef<Door>;
};
/** Well-formed requests of this test, used to obtain pids. */
const DOOR: Shapes<Door> = {
  attach: takes(
    { socket: actor(() => DOOR), peerId: text(), client: text(), replaces: unchecked<null>() },
    unchecked<Awaited<ReturnType<Door['attach']>>>(),
  ),
  roomRef: takes(
    { roomId: text() },
    actor(() => DOOR),
  ),
};

type Source = { subscribe: (message: { sink: ActorRef<Door> }) => unknown };
/** The source of a relayed stream. */
const SOURCE: Shapes<Source> = {
  subscribe: takes({ sink: actor(() => DOOR) }, unchecked<unknown>()),
};

describe('a node that receives anything from a member', () => {
  let mapper: PortMapperServer;
  let node: TestNode;
  let system: ActorSystem;
  let remote: RemoteActors;
  let rogue: DistributionNode;
  let self: Pid;
  let tool: InspectionClient;
  let annId: string;
  let ann: Awaited<ReturnType<TestNode['peerSocket']>>;
  /** Everything that a member can send to. */
  let targets: Record<string, Pid | { node: string; name: string }>;
  const faults: string[] = [];
  /** Lines about events that it has refused. */
  const refusals: string[] = [];

  beforeAll(async () => {
    mapper = await PortMapperServer.open({ port: 0, log: silentLog });
    const env = {
      JF_DIST_ENABLED: 'true',
      JF_DIST_MODE: 'name',
      JF_DIST_NODE_NAME: NODE,
      JF_DIST_COOKIE: COOKIE,
      JF_STANDBY: 'true',
      JF_DIST_IP: '127.0.0.1',
      JF_INSPECTION: 'full',
      ERL_EPMD_PORT: String(mapper.port),
    };
    const log = createLogger({
      sink: (line) => {
        if (/actor\.(fault|restart|mailbox)|_failed|\[error\]/.test(line)) faults.push(line);
        if (line.includes('cluster.event_refused')) refusals.push(line);
      },
    });
    node = await startTestNode(env, { log });
    system = openActorSystem({ log: silentLog });
    remote = connectActors(system, { log: silentLog });
    const reach = { name: 'm@127.0.0.1', mode: 'name', cookie: COOKIE, mapper: { port: mapper.port } } as const;
    rogue = await remote.start({ ...reach, log: silentLog });
    await rogue.connect(NODE);
    await until(() => rogue.nodes('members').includes(NODE));
    self = rogue.createPid();

    await node.createRoom({ roomId: 'one' });
    const [first, second] = [await node.addPeer('one'), await node.addPeer('one')];
    ann = await node.peerSocket();
    annId = first.id;
    await ann.authenticate(first.token);
    const room = await system.call(remote.remote(NODE, 'rooms_node', DOOR), { type: 'roomRef', roomId: 'one' });
    const socket = system.spawn({
      kind: 'socket',
      shapes: DOOR,
      init: () => null,
      handlers: { attach: none, roomRef: none },
    });
    const ask = (peerId: string) =>
      system.call(room, { type: 'attach', socket: socket as ActorRef<Door>, peerId, client: 'sdk', replaces: null });
    targets = {
      ...Object.fromEntries(NAMES.map((name) => [name, { node: NODE, name }])),
      'the room': pidOf(room),
      'a peer': pidOf((await ask(second.id)).peer),
      'a websocket': pidOf((await ask(first.id)).by),
      'a relay': await relayedStream(),
    };
  });
  afterAll(async () => {
    await tool?.close();
    await remote?.close();
    await system?.close();
    await node?.dispose();
    await mapper?.close();
  });

  /** Asks the node for a stream of this member, for which it hands out the pid of its relay. */
  async function relayedStream(): Promise<Pid> {
    const answer = { ok: true, v: 1, kind: 'trace', node: rogue.name, answer: { limit: null, withinMs: null } };
    let relay: unknown;
    const source = system.spawn({
      kind: 'inspection',
      shapes: SOURCE,
      init: () => null,
      handlers: {
        subscribe: (_state, { sink }) => {
          relay = sink;
          return answer;
        },
      },
    });
    system.register('inspection', source);
    tool = new InspectionClient({ system, remote, asked: NODE, tool: 'a test' });
    await tool.stream('trace', { match: 'rooms*' }, { node: rogue.name, onItem: () => {} });
    return pidOf(relay);
  }

  async function expectUnharmed(): Promise<void> {
    expect((await fetch(`${node.url}/health/ready`)).status).toBe(200);
    expect((await node.request('GET', '/room/one')).status).toBe(200);
    expect(ann.socket.readyState).toBe(ann.socket.OPEN);
    expect(faults).toEqual([]);
  }

  const messages = (to: string): Term[] =>
    ['deleteRooms', 'close', 'removePeer', ...TYPES].map((type) => ({ type, [to]: 1 }));

  test('survives every message without its fields unharmed', async () => {
    for (const [what, to] of Object.entries(targets)) {
      for (const message of messages(what)) {
        rogue.send(to, tuple(atom('$gen_cast'), message), { from: self });
        rogue.send(to, tuple(atom('$gen_call'), tuple(self, rogue.createRef()), message), { from: self });
      }
    }
    await answered();
    await expectUnharmed();
  });

  test('ends no room, service or peer on an exit signal or the end of a link', async () => {
    const pids = Object.values(targets).filter((to) => to instanceof Pid);
    const [room, peer] = pids as [Pid, Pid];
    for (const to of [room, peer]) {
      for (const reason of ['kill', 'shutdown', 'boom']) rogue.exit(self, to, atom(reason));
      rogue.link(self, to);
    }
    await answered();
    rogue.exited(self, atom('boom'));
    self = rogue.createPid();
    await answered();
    await expectUnharmed();
  });

  test('reports no end of its room because a member says so', async () => {
    const server = await node.serverSocket();
    const notification = { type: 'roomDeleted', roomId: 'one' };
    rogue.send({ node: NODE, name: 'events_node' }, { type: 'notification', notification }, { from: self });
    await until(() => refusals.length > 0);
    await node.createRoom();
    expect(await server.untilNews('roomCreated')).toEqual(['roomCreated']);
  });

  test('ignores fields that a message does not have', async () => {
    const changes = { maxPeers: 30, roomId: 'two', videoCodec: self };
    send(targets['the room'] as Pid, 'cast', { type: 'updateRoom', changes });
    await until(async () => (await node.request('GET', '/room/one')).body.data.config.maxPeers === 30);
    expect((await node.request('GET', '/room/one')).body.data.config).toMatchObject({
      roomId: 'one',
      videoCodec: null,
    });
  });

  test('keeps nothing larger than what the HTTP API allows', async () => {
    const calls = [
      { type: 'updateRoom', changes: { metadata: 'x'.repeat(64 * 1024) } },
      { type: 'updatePeer', peerId: annId, changes: { metadata: { deep: 'x'.repeat(1_000_000) } } },
    ];
    const before = (await node.request('GET', '/room/one')).body;
    for (const message of calls) send(targets['the room'] as Pid, 'cast', message);
    await answered();
    expect((await node.request('GET', '/room/one')).body).toEqual(before);
  });

  test('survives random messages, signals and calls', async () => {
    const { value } = fc.letrec<{ value: Term; object: Term }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        fc.oneof(
          fc.constantFrom<Term>(null, true, false, 0, -1, 1, 2 ** 31, 1e308, 2n ** 70n, '', 'one', '__proto__'),
          fc
            .constantFrom<() => Term>(
              () => atom('undefined'),
              () => atom('kill'),
              () => self,
              () => rogue.createRef(),
              () => targets['the room'] as Pid,
              () => targets['a websocket'] as Pid,
              () => tuple(atom('$actor'), 'rooms_node', NODE),
              () => tuple(atom('$bytes'), Buffer.alloc(9)),
              () => tuple(atom('$set'), [1, 2]),
              () => tuple(atom('$map'), [[1, 2]]),
              () => tuple(atom('$number'), 'nan'),
              () => tuple(atom('$deep'), Buffer.from([131, 106])),
              () => Buffer.from([255, 254]),
            )
            .map((make) => make()),
          fc.constantFrom(...TYPES),
          fc.nat(200).map((n) => 'x'.repeat(n)),
        ),
        fc.array(tie('value'), { maxLength: 4 }),
        tie('object'),
      ),
      object: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 4 }) as fc.Arbitrary<Term>,
    }));
    const message = fc
      .tuple(fc.constantFrom(...TYPES), fc.dictionary(fc.constantFrom(...KEYS), value, { maxKeys: 4 }))
      .map(([type, fields]): Term => ({ ...fields, type }));
    const sent = fc.oneof({ arbitrary: message, weight: 7 }, { arbitrary: value, weight: 1 });
    const form = fc.constantFrom('plain', 'cast', 'call', 'odd call', 'reply');
    const batch = fc.array(fc.tuple(fc.constantFrom(...Object.keys(targets)), form, sent), {
      minLength: 20,
      maxLength: 20,
    });

    await fc.assert(
      fc.asyncProperty(batch, async (all) => {
        for (const [to, how, term] of all) send(targets[to] as Pid, how, term);
        await answered();
        expect(faults).toEqual([]);
      }),
      { numRuns: fuzzRuns(5_000) },
    );
    await expectUnharmed();
  }, 600_000);

  (hasErlang ? test : test.skip)('survives anything an Erlang shell sends [needs erlang]', async () => {
    const erl = await Erlang.start('shell@127.0.0.1', mapper);
    try {
      await erl.eval(`erlang:set_cookie('${NODE}', '${COOKIE}')`);
      expect(await erl.eval(`net_adm:ping('${NODE}')`)).toBe('pong');
      const named = `[{Name, '${NODE}'} || Name <- [${NAMES.join(', ')}]]`;
      const types = `[${TYPES.filter((type) => type !== '__proto__').join(', ')}]`;
      const terms = `[42, [], <<255>>, {}, self(), make_ref(), fun() -> 1 end, #{}, #{1 => 2}, [a | b], undefined,
        {'EXIT', self(), kill}, {'DOWN', make_ref(), process, self(), kill}, {'$gen_call', self(), x} |
        [#{<<"type">> => atom_to_binary(T), T => {T, 1.0e300, 1 bsl 80}} || T <- ${types}]]`;
      const room = `element(2, gen_server:call({rooms_node, '${NODE}'}, #{<<"type">> => <<"roomRef">>, <<"roomId">> => <<"one">>}))`;
      const said = await erl.eval(`begin
        Room = ${room},
        [To ! Message || To <- [Room | ${named}], Message <- ${terms}],
        [To ! {'$gen_cast', Message} || To <- [Room | ${named}], Message <- ${terms}],
        [exit(Room, Reason) || Reason <- [kill, shutdown, boom]],
        spawn(fun() -> link(Room), exit(boom) end),
        {is_pid(Room), element(2, gen_server:call(Room, #{<<"type">> => <<"attach">>}))} end`);
      expect(said).toBe('{true,bad_message}');
      await answered();
      await expectUnharmed();
    } finally {
      await erl.stop();
    }
  });

  test('is not ready while a service keeps failing, and is ready afterwards', async () => {
    const ready = async () => (await fetch(`${node.url}/health/ready`)).json() as Promise<{ status: string }>;
    // Three restarts are immediate; the next one waits for a second.
    for (let i = 0; i < 4; i += 1) await tool.ask('kill', { id: 'events_node', reason: 'for a test' });
    expect(await ready()).toEqual({ status: 'DOWN', reason: 'service_failed' });
    await until(async () => (await ready()).status === 'UP');
  });

  function send(to: Pid | { node: string; name: string }, how: string, term: Term): void {
    const forms: Record<string, () => Term> = {
      plain: () => term,
      cast: () => tuple(atom('$gen_cast'), term),
      call: () => tuple(atom('$gen_call'), tuple(self, rogue.createRef()), term),
      'odd call': () => tuple(atom('$gen_call'), term, term),
      reply: () => tuple(rogue.createRef(), term),
    };
    rogue.send(to, (forms[how] as () => Term)(), { from: self });
  }

  /** Resolves when everything sent before has arrived and been handled. */
  async function answered(): Promise<void> {
    const names = remote.remote(NODE, 'rooms_node', DOOR);
    await system.call(names, { type: 'roomRef', roomId: 'one' });
  }
});

function none(): never {
  throw new Error('not asked');
}

function pidOf(ref: unknown): Pid {
  const { to } = ref as { to: unknown };
  if (!(to instanceof Pid)) throw new Error('no pid of another node');

  return to;
}
