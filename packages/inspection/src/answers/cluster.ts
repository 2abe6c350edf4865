import { PROTOCOLS } from '@bloom/distribution';
import type { Clock } from '@bloom/time';
import type { Answers, Asker, Inspector, MemberAnswer, Producers, Unreachable } from '../inspector/inspector.js';
import { InspectionError } from '../errors.js';
import type { Figures } from '../process/figures.js';
import type { AnswerOf, ParsedRequest } from '../protocol/types.js';
import { PROTOCOL_VERSION, type InspectionMode } from '../protocol/wire.js';
import type { InspectionSources } from '../sources.js';
import { judge } from './cluster-verdict.js';
import { drainState } from './drain.js';
import type { FaultBook } from './fault-book.js';
import { noRoom } from './media-lines.js';

/** A member that does not answer within this time is listed as unreachable. */
const MEMBER_TIMEOUT_MS = 1_000;

/** What the answers about the node and its cluster work with. */
export interface ClusterAnswerContext {
  sources: InspectionSources;
  mode: InspectionMode;
  inspector: () => Inspector;
  figures: Figures;
  faults: FaultBook;
  clock: Clock;
}

export function clusterAnswers(context: ClusterAnswerContext): Answers {
  const { sources, faults, clock } = context;

  return {
    hello: () => helloAnswer(context),
    node: () => nodeLine(context),
    nodes: (_fields, asker) => nodesAnswer(context, asker),
    links: () => ({ self: sources.self, links: [...sources.links.list()] }),
    cluster: (_fields, asker) => clusterAnswer(context, asker),
    drain: ({ deadlineMs, moveMs }, { tool }) => {
      const { drainOrder } = sources.rooms;
      const refusal = moveMs === null ? undefined : drainOrder.moveRefusal();
      if (refusal !== undefined) throw new InspectionError('NOT_SUPPORTED', refusal);
      drainOrder.give(tool, deadlineMs, moveMs);
      return drainState(sources.rooms, clock) as AnswerOf<'drain'>;
    },
    undrain: (_fields, { tool }) => ({
      wasDraining: sources.rooms.drainOrder.withdraw(tool),
      draining: sources.rooms.draining,
    }),
    'room-move': (fields, asker) => moveRoom(context, fields, asker),
    'link-cut': (fields, asker) => cutLink(context, fields, asker),
    'move-fault': (fields, asker) => armMove(context, fields, asker),
    faults: () => ({ faults: faults.list() }),
  };
}

export function clusterProducers({ events }: InspectionSources): Producers {
  return {
    'cluster-events': ({ backlog }, stream) => {
      for (const event of events.last(backlog)) stream.push(event);

      return events.follow((event) => void stream.push(event));
    },
  };
}

function helloAnswer({ sources, mode, inspector, clock }: ClusterAnswerContext): AnswerOf<'hello'> {
  return {
    node: sources.self,
    version: sources.version,
    protocol: PROTOCOL_VERSION,
    mode,
    kinds: inspector().kinds,
    streams: inspector().streamKinds,
    pid: process.pid,
    now: clock.wall(),
    startedAt: sources.startedAt,
  };
}

function nodeLine({ sources, figures, clock }: ClusterAnswerContext): AnswerOf<'node'> {
  const { loop, cpu } = figures.reading;
  // A connected node of unknown kind is not a member: members announce themselves immediately.
  const links = sources.links
    .list()
    .filter(({ kind, state }) => kind === 'member' || (kind === 'unknown' && state !== 'up'));
  const { rooms, forwardedTracks } = sources.rooms.load();

  return {
    name: sources.self,
    state: sources.rooms.draining ? 'draining' : 'up',
    version: sources.version,
    protocols: PROTOCOLS,
    startedAt: sources.startedAt,
    uptimeMs: clock.wall() - sources.startedAt,
    rooms,
    peers: sources.rooms.views().reduce((sum, { peers }) => sum + peers.length, 0),
    forwardedTracks,
    cpu: Math.round((cpu.user + cpu.system) * 1_000) / 1_000,
    loopP99Ms: loop.p99Ms,
    links: { up: links.filter(({ state }) => state === 'up').length, known: links.length },
    drain: drainState(sources.rooms, clock),
    media: sources.rooms.mediaReach,
    now: clock.wall(),
  };
}

async function nodesAnswer(context: ClusterAnswerContext, asker: Asker): Promise<AnswerOf<'nodes'>> {
  const { answers, unreachable } = await askMembers(context, 'node', asker);
  const askedAt = context.clock.wall();
  const own = { ...nodeLine(context), ageMs: 0, clockSkewMs: 0 };
  const others = answers.map(({ answer, tookMs, answeredAt }) => ({
    ...answer,
    ageMs: askedAt - answeredAt + tookMs,
    // Assumes that the member read its clock halfway.
    clockSkewMs: answer.now - (answeredAt - tookMs / 2),
  }));
  const nodes = [own, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1));

  return { nodes, unreachable };
}

async function clusterAnswer(context: ClusterAnswerContext, asker: Asker): Promise<AnswerOf<'cluster'>> {
  const { self, links } = context.sources;
  const { answers, unreachable } = await askMembers(context, 'links', asker);
  const views = [
    { node: self, links: [...links.list()] },
    ...answers.map(({ node, answer }) => ({ node, links: answer.links })),
  ].toSorted((a, b) => (a.node < b.node ? -1 : 1));

  return { views, unreachable, ...judge(views) };
}

/** Asks all members. `unreachable` includes those without a link. */
async function askMembers<K extends 'node' | 'links'>(
  { sources, inspector }: ClusterAnswerContext,
  kind: K,
  asker: Asker,
): Promise<{ answers: MemberAnswer<K>[]; unreachable: Unreachable[] }> {
  const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, asker.timeoutMs);
  const { answers, unreachable } = await inspector().askMembers(kind, {}, { ...asker, timeoutMs });
  for (const { node, kind: what, state, lastError } of sources.links.list()) {
    if ((what !== 'member' && what !== 'unknown') || state === 'up') continue;
    if (unreachable.some(({ name }) => name === node) || answers.some((answer) => answer.node === node)) continue;
    unreachable.push({ name: node, reason: state === 'cut' ? 'cut on purpose' : (lastError ?? 'no link') });
  }

  return { answers, unreachable };
}

/** @throws InspectionError NOT_SUPPORTED, UNKNOWN_ROOM, UNKNOWN_NODE; TIMEOUT or FAILED if the room has left */
async function moveRoom(
  { sources }: ClusterAnswerContext,
  { room, to }: ParsedRequest<'room-move'>,
  { tool }: Asker,
): Promise<AnswerOf<'room-move'>> {
  const { self, rooms } = sources;
  const refusal = rooms.drainOrder.moveRefusal();
  if (refusal !== undefined) throw new InspectionError('NOT_SUPPORTED', refusal);
  if (!rooms.views().some(({ id }) => id === room)) {
    // Its new node has not announced it yet.
    if (rooms.relayRef(room) !== undefined)
      return { room, from: self, to: null, reason: 'it is moving already', ms: 0 };
    throw noRoom(self, room);
  }
  const result = await rooms.drainOrder.moveRoom(tool, room, to === null ? null : memberNamed(to, sources));
  const { outcome } = result;
  if (outcome === 'stays') return { room, from: self, to: null, reason: result.reason, ms: 0 };
  const { node, ms } = result;
  if (outcome === 'unconfirmed')
    throw new InspectionError('TIMEOUT', `${self} gave the room ${room} to ${node}, which has not confirmed it yet`);
  if (outcome === 'lost')
    throw new InspectionError('FAILED', `${node} ended while the room ${room} moved there: the room has crashed`);

  return { room, from: self, to: node, reason: null, ms };
}

/** Completes `b` to `b@sfu-2.internal` if exactly one member has that name. */
function memberNamed(name: string, { self, members }: InspectionSources): string {
  const names = [self, ...members()];
  const isIt = (node: string): boolean => node === name || node.slice(0, node.indexOf('@')) === name;
  const [found, ...more] = names.filter(isIt);
  if (found === undefined)
    throw new InspectionError('UNKNOWN_NODE', `no member is called "${name}"; the members are: ${names.join(', ')}`);
  if (more.length > 0)
    throw new InspectionError('BAD_REQUEST', `"${name}" can be ${[found, ...more].join(' or ')}; write it in full`);

  return found;
}

/** @throws InspectionError BAD_REQUEST, UNKNOWN_NODE */
function cutLink(
  { sources, faults, clock }: ClusterAnswerContext,
  { to, forMs }: ParsedRequest<'link-cut'>,
  { tool }: Asker,
): AnswerOf<'link-cut'> {
  const { self, links, log } = sources;
  if (to === self) throw new InspectionError('BAD_REQUEST', `${self} has no link to itself`);
  const isKnown = links.list().some(({ node, kind }) => node === to && kind !== 'tool');
  if (!isKnown) throw new InspectionError('UNKNOWN_NODE', `${self} does not know a node called ${to}`);
  const until = clock.wall() + forMs;
  log.warn('inspection.link_cut', { tool, node: to, forMs });
  faults.begin({ kind: 'link-cut', target: to, tool, forMs, ended: () => {} });
  links.cut(to, forMs);

  return { from: self, to, until };
}

/** @throws InspectionError NOT_SUPPORTED without a cluster */
function armMove(
  { sources, faults, clock }: ClusterAnswerContext,
  { point, does, forMs }: ParsedRequest<'move-fault'>,
  { tool }: Asker,
): AnswerOf<'move-fault'> {
  const { movePoints, log, self } = sources;
  if (movePoints === undefined) throw new InspectionError('NOT_SUPPORTED', `${self} is not part of a cluster`);
  const until = clock.wall() + forMs;
  log.warn('inspection.move_fault', { tool, point, does, forMs });
  faults.begin({ kind: 'move-fault', target: point, tool, forMs, ended: () => movePoints.disarm(point) });
  movePoints.arm(point, () => {
    log.warn('inspection.move_fault_struck', { tool, point, does });
    process.kill(process.pid, does === 'kill' ? 'SIGKILL' : 'SIGSTOP');
    // A process that goes on has had its fault.
    faults.end('move-fault', point);
  });

  return { point, does, until };
}
