// LiveKit clients of a room that another node of the cluster owns.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { DisconnectReason, LeaveRequest, LeaveRequest_Action } from '@livekit/protocol';
import { RoomServiceClient } from 'livekit-server-sdk';
import { WebSocket } from 'ws';
import { Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode, type TestNode } from './testing/test-node.js';

let mapper: PortMapperServer;
let first: TestNode;
let second: TestNode;
const sockets: WebSocket[] = [];

beforeAll(async () => {
  mapper = await PortMapperServer.open({ port: 0, log: silentLog });
  const env = (name: string, others: object): Record<string, string> => ({
    JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}`,
    JF_SECRET_KEY_BASE: 'the-same-on-all-nodes-of-a-cluster',
    JF_DIST_ENABLED: 'true',
    JF_DIST_MODE: 'name',
    JF_DIST_NODE_NAME: `${name}@127.0.0.1`,
    JF_DIST_COOKIE: 'a_cookie_for_the_tests_of_clusters',
    JF_DIST_IP: '127.0.0.1',
    ERL_EPMD_PORT: String(mapper.port),
    ...others,
  });
  first = await startTestNode(env('first', {}));
  second = await startTestNode(env('second', { JF_DIST_NODES: 'first@127.0.0.1' }));
  await until(() => second.cluster?.node.nodes().length === 1);
});
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await second.dispose();
  await first.dispose();
  await mapper.close();
});

async function join(node: TestNode, identity: string, room: string): Promise<Client> {
  const token = await tokenFor({ sub: identity, video: { room } });
  const url = `${node.url.replace('http', 'ws')}/rtc/v1?access_token=${token}&join_request=${joinRequest()}`;
  const client = new Client(new WebSocket(url));
  sockets.push(client.socket);
  const refused = await Promise.race([client.heard('join').then(() => undefined), client.ended]);
  if (refused !== undefined) throw new Error(`${identity} was refused: ${refused}`);

  return client;
}

const isOwner = (node: TestNode, room: string): boolean => node.rooms.view(room) !== undefined;

test('two first joins through two nodes meet in one room, under the same sids', async () => {
  const [ann, bob] = await Promise.all([join(first, 'ann', 'both'), join(second, 'bob', 'both')]);
  expect(isOwner(first, 'both')).toBe(!isOwner(second, 'both'));
  const [a, b] = [await ann.heard('join'), await bob.heard('join')];
  expect(a?.room?.sid).toBe(b?.room?.sid);
  const service = new RoomServiceClient(second.url, KEY, SECRET);
  const listed = await service.listParticipants('both');
  expect(listed.map(({ sid }) => sid).toSorted()).toEqual(
    [a, b].map((each) => each?.participant?.sid ?? '').toSorted(),
  );
});

test('a join of an identity replaces the one that came through another node', async () => {
  const before = await join(first, 'ann', 'twice');
  await join(second, 'ann', 'twice');
  expect(await before.heard('leave')).toMatchObject({ reason: DisconnectReason.DUPLICATE_IDENTITY });
});

/** Resumes a session with a token of its own; returns what the client hears first, or how it is refused. */
async function resume(
  node: TestNode,
  { sid, ...claims }: { sid: string; sub: string; video: Record<string, unknown> },
): Promise<Client> {
  const request = joinRequest({ reconnect: true, participantSid: sid });
  const url = `${node.url.replace('http', 'ws')}/rtc/v1?access_token=${await tokenFor(claims)}&join_request=${request}`;
  const client = new Client(new WebSocket(url));
  sockets.push(client.socket);

  return client;
}

describe('a client that resumes through another node', () => {
  let ann: Client;
  let sid: string;
  let rooms = 0;
  let room = '';

  beforeEach(async () => {
    // Joins of one identity in one room are limited.
    room = `twin-${++rooms}`;
    ann = await join(first, 'ann', room);
    sid = (await ann.heard('join'))?.participant?.sid ?? '';
  });

  test.each([
    ['the one', () => first],
    ['the other', () => second],
  ])('keeps its session, and %s node serves it from then on', async (_which, node) => {
    const through = node();
    const other = through === first ? second : first;
    // Away from the node that it has joined through, and back.
    const there = await resume(other, { sid, sub: 'ann', video: { room } });
    await there.heard('reconnect');
    const back = await resume(through, { sid, sub: 'ann', video: { room } });
    await back.heard('reconnect');
    expect(await there.ended).toBe('1000');
    expect(there.frames.some((frame) => frame.case === 'leave')).toBe(false);
    await back.until('update', ({ participants }) => participants.some((each) => each.sid === sid));
    expect((await back.heard('refreshToken')).length).toBeGreaterThan(0);
    const owner = isOwner(first, room) ? first : second;
    expect(owner.rooms.view(room)?.peers).toHaveLength(1);

    back.send({ case: 'leave', value: new LeaveRequest() });
    await until(() => owner.rooms.view(room)?.peers.length === 0);
  });

  test.each([
    ['of another identity', { sub: 'eve' }],
    ['that permits less', { sub: 'ann', canSubscribe: false }],
  ])('starts over if its token is one %s', async (_what, { sub, ...grants }) => {
    const again = await resume(second, { sid, sub, video: { room, ...grants } });
    expect(await again.heard('leave')).toMatchObject({
      reason: DisconnectReason.STATE_MISMATCH,
      action: LeaveRequest_Action.RECONNECT,
    });
    ann.send({ case: 'leave', value: new LeaveRequest() });
  });

  test('starts over if nobody has its sid', async () => {
    const again = await resume(second, { sid: 'PA_aaaaaaaaaaaaaaaa', sub: 'ann', video: { room } });
    expect(await again.heard('leave')).toMatchObject({ reason: DisconnectReason.STATE_MISMATCH });
    ann.send({ case: 'leave', value: new LeaveRequest() });
  });
});

test('a client of a room whose node stops is notified, and starts over', async () => {
  let name = 'moving-0';
  for (let i = 0; !isOwner(first, name); i++) {
    name = `moving-${i}`;
    await join(second, 'bob', name);
  }
  const ann = await join(second, 'ann', name);
  await first.dispose();
  expect(await ann.heard('leave')).toMatchObject({
    reason: DisconnectReason.SERVER_SHUTDOWN,
    action: LeaveRequest_Action.RECONNECT,
  });
  expect(await ann.ended).toBe('1000');
  const again = await join(second, 'ann', name);
  expect((await again.heard('join'))?.participant?.identity).toBe('ann');
});
