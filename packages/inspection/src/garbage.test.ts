import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { fuzzRuns, until } from '@bloom/time/testing';
import type { ActorRef, Behaviour } from '@bloom/actors';
import { atom, Pid, Ref, tuple, type Term } from '@bloom/etf';
import type { PortMapperServer } from '@bloom/port-mapper';
import fc from 'fast-check';
import { loadSchemas, type InspectionProtocol, type Reply, type SinkRef } from './index.js';
import { ERROR_CODES, INSPECTION_SHAPES } from './protocol/wire.js';
import { startMapper, startMember, startTool, type Member, type Tool } from './testing/nodes.js';

const { requests, streams } = await loadSchemas();

describe('malformed requests and answers', () => {
  let mapper: PortMapperServer;
  let a: Member;
  let tool: Tool;
  let target: ActorRef<InspectionProtocol>;

  beforeAll(async () => {
    mapper = await startMapper();
    a = await startMember('a', mapper, { mode: 'read' });
    tool = await startTool(a, mapper);
    target = tool.remote.remote(a.name, 'inspection', INSPECTION_SHAPES);
  });
  afterAll(async () => {
    await tool?.stop();
    await a?.stop();
    await mapper?.close();
  });

  const isAnswer = ({ ok, v, ...rest }: Reply): boolean => {
    expect(v).toBe(1);
    if (ok) return true;
    const { error } = rest as Extract<Reply, { ok: false }>;
    expect(ERROR_CODES).toContain(error.code);
    // Never an internal fault.
    expect(error).not.toMatchObject({ code: 'FAILED' });
    expect(error.message.length).toBeGreaterThan(5);
    return false;
  };
  const kinds = fc.oneof(fc.constantFrom<string>(...Object.keys(requests), ...Object.keys(streams)), fc.string());
  const fieldNames = ['id', 'room', 'peer', 'component', 'match', 'limit', 'sampleMs', 'forMs', 'to', 'path', 'depth'];
  const scalars = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.constant('rooms'),
  );
  const fields = fc.dictionary(
    fc.oneof(fc.constantFrom(...fieldNames), fc.string()),
    fc.oneof(scalars, fc.anything()),
    {
      maxKeys: 5,
    },
  );

  test('refuses arbitrary values with a reason and opens nothing', async () => {
    const mostly = (right: fc.Arbitrary<unknown>) =>
      fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: fc.anything() });
    const asking = fc.record(
      {
        v: mostly(fc.constant(1)),
        tool: mostly(fc.constant('t')),
        node: mostly(fc.constantFrom(null, 'a@127.0.0.1', 'b@127.0.0.1')),
        timeoutMs: mostly(fc.constant(20)),
        request: mostly(fc.tuple(fields, kinds).map(([some, kind]) => ({ ...some, kind }))),
        stream: mostly(fc.uuid()),
        sink: fc.anything(),
      },
      { requiredKeys: ['v', 'tool', 'request'] },
    );
    const { inspector } = a.inspection!;
    // Runs in full outside the nightly run, too: with a tenth of the runs the count at the end would be too close to
    // its bound.
    const runs = Math.max(625, fuzzRuns(2_500));
    let asked = 0;
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(asking, async (message) => {
        asked += 1;
        if (isAnswer(await inspector.ask(message as never))) answered++;
        expect(isAnswer(await inspector.subscribe(message as never))).toBe(false);
        inspector.unsubscribe(message.stream);
      }),
      { numRuns: runs },
    );
    expect(answered).toBeGreaterThan(asked / 50);
    expect(inspector.openStreams).toBe(0);
  }, 60_000);

  test('ends neither the link nor the actor on arbitrary terms from another node', async () => {
    const { term } = fc.letrec<{ term: Term }>((tie) => ({
      term: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.string({ unit: 'grapheme' }),
        fc.integer(),
        fc.boolean(),
        fc.constantFrom<Term>(
          atom('ask'),
          atom('type'),
          null,
          new Pid(atom('z@127.0.0.1').name, 1, 1, 1),
          new Ref(atom('z@127.0.0.1').name, 1, [1, 2, 3]),
          Buffer.from([255, 0]),
        ),
        fc.array(tie('term'), { maxLength: 4 }),
        fc.array(tie('term'), { maxLength: 4 }).map((items) => tuple(...items)),
        fc
          .tuple(
            fc.constantFrom('ask', 'subscribe', 'unsubscribe', 'nothing'),
            fc.dictionary(fc.constantFrom('v', 'tool', 'node', 'request', 'stream', 'sink', '$actor'), tie('term')),
          )
          .map(([type, rest]) => new Map<Term, Term>([['type', type], ...Object.entries(rest)])),
      ),
    }));
    const from = tool.node.createPid();
    const restarts = a.system.info(a.system.whereis('inspection')!)?.restarts;
    await fc.assert(
      fc.asyncProperty(term, async (message) => {
        const call = tuple(atom('$gen_call'), tuple(from, tool.node.createRef()), message);
        for (const sent of [message, call]) tool.node.send({ node: a.name, name: 'inspection' }, sent, { from });
        await new Promise(setImmediate);
      }),
      { numRuns: fuzzRuns(300) },
    );
    expect(tool.node.nodes('connected')).toEqual([a.name]);
    expect(a.system.info(a.system.whereis('inspection')!)?.restarts).toBe(restarts);
    expect((await tool.client.ask('hello', {})).answer.mode).toBe('read');
  });

  test('refuses a sink whose address was made up', async () => {
    const rooms = a.system.at('/rooms')!;
    const sink = { path: rooms.path, key: rooms.key } as SinkRef;
    const request = { kind: 'log-tail' };
    const opening = { v: 1, tool: 't', node: null, request, stream: 'a-stream-name', sink } as const;
    const reply = await tool.system.call(target, { type: 'subscribe', ...opening });
    expect(reply).toMatchObject({ ok: false, error: { code: 'BAD_REQUEST' } });
  });

  test('tells a tool of another version which version is spoken', async () => {
    const reply = await tool.system.call(target, { type: 'ask', v: 7, tool: 't', node: null, request: { kind: 'ps' } });
    expect(reply).toMatchObject({ ok: false, error: { code: 'NOT_SUPPORTED', message: expect.stringContaining('7') } });
  });

  test('lists a member with an invalid answer as unreachable, with the reason', async () => {
    const odd = await startMember('odd', mapper, { seeds: [a.name] });
    try {
      await until(() => a.node.nodes().includes(odd.name));
      await odd.system.stop(odd.system.whereis('inspection')!);
      const nonsense: Behaviour<Pick<InspectionProtocol, 'ask'>, null> = {
        kind: 'nonsense',
        shapes: { ask: INSPECTION_SHAPES.ask },
        init: () => null,
        handlers: { ask: () => ({ ok: true, v: 1, kind: 'node', node: odd.name, answer: { rooms: 'many' } }) },
      };
      odd.system.register('inspection', odd.system.spawn(nonsense));
      const { answer } = await tool.client.ask('nodes', {});
      expect(answer.nodes.map(({ name }) => name)).toEqual([a.name]);
      expect(answer.unreachable).toEqual([
        {
          name: odd.name,
          reason: expect.stringMatching(/^the answer of odd@127.0.0.1 to node cannot be understood: /),
        },
      ]);
    } finally {
      await odd.stop();
    }
  });
});
