/** What a broken or hostile member sends over its own links: the others refuse it and keep their promises. */
import { atom, type Term, tuple } from '@bloom/etf';
import type { Dice } from './dice.js';
import type { VirtualNode } from './virtual-node.js';

/** Names under which nodes receive messages. */
const RECEIVERS = ['rooms_node', 'events_node', 'net_kernel', 'rex', 'nobody'];
/** Elements of a list that is longer than any that nodes send here. */
const MANY = 5_000;
const DEPTH = 300;

/** The sender, another node in whose name it speaks, and a room of that node. */
interface Names {
  readonly self: string;
  readonly other: string;
  readonly roomId: string;
}

const OFFER = { move: 'unknown', reservation: 'none', createdAt: 0, epoch: 1 };

/** Terms that are no messages, messages without their fields, and messages in the name of another node. */
const GARBAGE: readonly ((names: Names) => Term)[] = [
  () => atom('junk'),
  () => 42,
  () => 'text',
  () => [],
  () => ({}),
  () => nested(DEPTH),
  () => Array.from({ length: MANY }, (_, i) => i),
  () => ({ type: 5 }),
  () => ({ type: 'nonsense', fields: [1, 2, 3] }),
  () => ({ type: '__proto__' }),
  () => ({ type: 'announce' }),
  ({ self }) => ({ type: 'announce', node: self, created: { roomId: 7 } }),
  ({ other, roomId }) => ({ type: 'announce', node: other, removed: roomId }),
  ({ other }) => ({ type: 'snapshot', node: other, rooms: [] }),
  ({ self }) => ({ type: 'snapshot', node: self, rooms: Array.from({ length: MANY }, () => ({})) }),
  ({ other }) => ({ type: 'takeRoom', node: other, move: 'unknown' }),
  ({ other }) => ({ type: 'keepRoom', node: other, move: 'unknown', reservation: 'unknown' }),
  ({ other }) => ({ type: 'moveState', node: other, move: 'unknown' }),
  ({ self }) => ({ type: 'offerRoom', node: self, ...OFFER, snapshot: '{"not": "a snapshot"}' }),
  ({ other }) => ({ type: 'offerRoom', node: other, ...OFFER, snapshot: '{' }),
  () => ({ type: 'reserve', seen: { forwardedTracks: -1, rooms: 'many' } }),
  () => ({ type: 'create', reservation: 'none', creation: 'none', config: { roomId: atom('null') } }),
  () => ({ type: 'claim', roomId: 'x'.repeat(MANY), claimant: 'nobody' }),
  ({ roomId }) => ({ type: 'roomRef', roomId: [roomId] }),
  ({ other }) => ({ type: 'interest', node: other, metrics: atom('true'), data: atom('false') }),
  () => ({ type: 'notification', notification: { type: 'roomDeleted' } }),
  ({ roomId }) => ({ type: 'notification', notification: { type: 'roomDeleted', roomId } }),
  ({ roomId }) => ({ type: 'notification', notification: { type: 'peerConnected', roomId, peerId: 'nobody' } }),
  () => ({ type: 'notification', notification: 'roomDeleted' }),
];

function nested(depth: number): Term {
  let term: Term = [];
  for (let i = 0; i < depth; i += 1) term = [term];

  return term;
}

/** Sends something to another node, as a cast or as a call, or tries to end one of its rooms. */
export function babble(node: VirtualNode, others: readonly VirtualNode[], dice: Dice): void {
  const { distribution } = node;
  const [to, third] = [dice.pick(others), dice.pick(others)];
  if (distribution === undefined || to === undefined || third === undefined) return;
  // Former owners of a room are believed for a while.
  const isForeign = (roomId: string): boolean => !to.registry.directory.knewLately(node.name, roomId);
  const roomId = dice.pick(third.host.roomIds().filter(isForeign)) ?? 'kitchen';
  if (dice.random() < 0.1) return node.tryToEnd(roomId);
  const term = dice.pick(GARBAGE)({ self: node.name, other: third.name, roomId });
  const from = distribution.createPid();
  const isCall = dice.random() < 0.5;
  const message = isCall ? tuple(atom('$gen_call'), tuple(from, distribution.createRef()), term) : term;
  distribution.send({ node: to.name, name: dice.pick(RECEIVERS) }, message, { from });
}
