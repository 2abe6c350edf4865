import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultRoomConfig } from '../room-service.js';
import { testNode, videoTrack, type TestNode, type TestPeer } from '../testing/index.js';

const CROWD = 120;

let node: TestNode;
let people: TestPeer[];

beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
  people = [];
  // The clock stands still, so they all come at the same time.
  for (let i = 0; i < CROWD; i++) people.push(await node.join('hall'));
});
afterEach(() => node.close());

type Heard = { type: string; endpointId?: string; endpoint?: { id: string }; endpoints?: { id: string }[] };

/** Returns what a peer's session has heard since the last call, such as `endpointAdded p7`. */
function heard({ socket }: TestPeer): string[] {
  const inputs = socket.sent.splice(0) as Heard[];
  return inputs.map(({ type, endpointId, endpoint, endpoints = [] }) =>
    [type, ...endpoints.map(({ id }) => id), endpointId ?? endpoint?.id ?? ''].join(' ').trim(),
  );
}

/** Returns the ids of those whom a peer knows, once for each time that it was told of them. */
function known(peer: TestPeer): string[] {
  return heard(peer).flatMap((line) => line.split(' ').slice(1));
}

describe('a rush into a large room', () => {
  test('is told to everybody together, and each learns of every other once', async () => {
    const [first] = people;
    expect(first!.socket.sent.length).toBeLessThan(CROWD);
    await node.advance(1);
    for (const peer of people) {
      const others = people.filter((other) => other !== peer).map(({ id }) => id);
      expect(known(peer).toSorted()).toEqual(others.toSorted());
    }
  });

  test('delays neither those who come alone nor those who publish at once', async () => {
    await node.advance(1);
    const [first] = people;
    heard(first!);
    const alone = await node.join('hall');
    expect(heard(first!)).toEqual([`endpointAdded ${alone.id}`]);

    const another = await node.join('hall');
    expect(heard(first!)).toEqual([]);
    await another.act({ type: 'publish', tracks: [videoTrack('t1')] });
    expect(heard(first!)).toEqual([`endpointAdded ${another.id}`, `tracksAdded ${another.id}`]);
  });

  test('is told before anybody of it changes or leaves', async () => {
    await node.advance(1);
    const [first] = people;
    await node.join('hall');
    heard(first!);
    const shy = await node.join('hall');
    const vain = await node.join('hall');
    await vain.act({ type: 'setMetadata', metadata: 'new' });
    expect(heard(first!)).toEqual([
      `endpointAdded ${shy.id}`,
      `endpointAdded ${vain.id}`,
      `endpointUpdated ${vain.id}`,
    ]);
    const brief = await node.join('hall');
    await brief.detach();
    expect(heard(first!)).toEqual([`endpointAdded ${brief.id}`, `endpointRemoved ${brief.id}`]);
    await node.advance(1);
    expect(heard(first!)).toEqual([]);
  });

  test('tells once of a hidden peer that leaves and is back to be seen, and tells it of nobody twice', async () => {
    await node.advance(1);
    const [first] = people;
    await node.join('hall');
    const before = await node.join('hall');
    const { peer, token } = await node.rooms.addPeer('hall', {});
    const spy = await node.connect(token);
    await spy.act({ type: 'join', metadata: null, hidden: true });
    const after = await node.join('hall');
    for (const { socket } of [first!, before, after, spy]) socket.sent.splice(0);
    await spy.act({ type: 'leave' }, { type: 'join', metadata: null });
    await node.advance(1);
    for (const other of [first!, before, after]) expect(known(other).filter((id) => id === peer.id)).toHaveLength(1);
    const seen = known({ id: peer.id, ...spy });
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining([before.id, after.id]));
  });
});
