// Compares the room that the negotiation tests use with the real one.
import { afterEach, expect, test } from '@jest/globals';
import { defaultRoomConfig, type EndpointTrack, type PeerRequest, type SessionInput } from '@bloom/rooms';
import { testNode, type TestNode, type TestPeer } from '@bloom/rooms/testing';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { SimulatedRoom } from './simulated-room.js';

let node: TestNode | undefined;
afterEach(() => node?.close());

interface Step {
  readonly peer: number;
  readonly request: PeerRequest;
}

const PEERS = 3;
const track = (trackId: string): EndpointTrack => ({
  trackId,
  kind: 'video',
  codec: 'vp8',
  metadata: null,
  encodings: [],
  disabledEncodings: [],
});

const trackId = fc.constantFrom('t1', 't2', 't3');
const request: fc.Arbitrary<PeerRequest> = fc.oneof(
  fc.constant({ type: 'leave' as const }),
  fc.record({ type: fc.constant('join' as const), metadata: fc.nat(2) }),
  fc.record({ type: fc.constant('setMetadata' as const), metadata: fc.nat(2) }),
  fc.record({ type: fc.constant('publish' as const), tracks: fc.uniqueArray(trackId).map((ids) => ids.map(track)) }),
  fc.record({ type: fc.constant('unpublish' as const), trackIds: fc.uniqueArray(trackId, { minLength: 1 }) }),
  fc.record({ type: fc.constant('setTrackMetadata' as const), trackId, metadata: fc.nat(2) }),
);

/** Keeps to what real sessions do: join once, publish under their own ids, touch only existing tracks. */
function sensible(steps: readonly { peer: number; request: PeerRequest }[]): Step[] {
  const joined = new Set<number>();
  const published = new Map<string, number>();
  return steps.flatMap(({ peer, request: asked }): Step[] => {
    const own = (id: string): string => `${peer}-${id}`;
    const has = (id: string): boolean => published.has(own(id));
    if (asked.type === 'join') {
      if (joined.has(peer)) return [];
      joined.add(peer);
      return [{ peer, request: asked }];
    }
    if (!joined.has(peer)) return [];
    switch (asked.type) {
      case 'leave':
        joined.delete(peer);
        for (const [id, owner] of published) if (owner === peer) published.delete(id);
        return [{ peer, request: asked }];
      case 'publish': {
        const tracks = asked.tracks.filter((one) => !has(one.trackId)).map((one) => track(own(one.trackId)));
        for (const one of tracks) published.set(one.trackId, peer);
        return tracks.length === 0 ? [] : [{ peer, request: { type: 'publish', tracks } }];
      }
      case 'unpublish': {
        const trackIds = asked.trackIds.filter(has).map(own);
        for (const id of trackIds) published.delete(id);
        return trackIds.length === 0 ? [] : [{ peer, request: { type: 'unpublish', trackIds } }];
      }
      case 'setTrackMetadata':
        return has(asked.trackId) ? [{ peer, request: { ...asked, trackId: own(asked.trackId) } }] : [];
      default:
        return [{ peer, request: asked }];
    }
  });
}

/** Sorts the endpoints, whose order the room does not guarantee. */
function ordered(inputs: readonly SessionInput[]): unknown[] {
  return inputs.map((input) =>
    input.type === 'joined'
      ? { ...input, endpoints: input.endpoints.toSorted((a, b) => a.id.localeCompare(b.id)) }
      : input,
  );
}

test('sends its sessions the same notifications as the real room', async () => {
  const script = fc.array(fc.record({ peer: fc.nat(PEERS - 1), request }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(script, async (steps) => {
      await node?.close();
      const real = testNode();
      node = real;
      await real.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
      const peers: TestPeer[] = [];
      for (let i = 0; i < PEERS; i += 1) {
        const { peer, token } = await real.rooms.addPeer('kitchen', {});
        peers.push({ id: peer.id, ...(await real.connect(token)) });
      }

      const simulated = new SimulatedRoom();
      const told = peers.map((): SessionInput[] => []);
      for (const step of sensible(steps)) {
        const { id, act } = peers[step.peer] as TestPeer;
        await act(step.request);
        simulated.act(id, step.request, (input) => told[step.peer]?.push(input));
      }
      expect(told.map(ordered)).toEqual(peers.map(({ socket }) => ordered(socket.sent as SessionInput[])));
    }),
    { numRuns: fuzzRuns(200) },
  );
});
