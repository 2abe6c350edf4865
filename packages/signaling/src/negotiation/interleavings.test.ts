import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { chooser, Lanes } from '../testing/lanes.js';
import { SimulatedPeer } from '../testing/simulated-peer.js';
import { SimulatedRoom } from '../testing/simulated-room.js';

type Operation =
  | { do: 'add'; kind: 'audio' | 'video' | 'simulcast' }
  | { do: 'remove' | 'replace' | 'describe' | 'target'; index: number }
  | { do: 'leave' | 'lose' | 'join' | 'rename' };
interface Step {
  peer: number;
  operation: Operation;
}

const index = fc.nat(7);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('add' as const), kind: fc.constantFrom('audio', 'video', 'simulcast') }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), index }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('replace' as const, 'describe' as const, 'target' as const), index }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('leave' as const, 'lose' as const, 'rename' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('join' as const) }) },
);

/** The peers of one room and a program of user actions. */
class World {
  readonly complaints: string[] = [];
  readonly lanes = new Lanes();
  readonly room = new SimulatedRoom();
  readonly choose: (count: number) => number;
  readonly #peers: (SimulatedPeer | undefined)[];
  #renames = 0;

  constructor(seed: number, count: number) {
    this.choose = chooser(seed);
    this.#peers = Array.from({ length: count });
    for (let peer = 0; peer < count; peer++) this.#join(peer);
  }

  present(): [string, SimulatedPeer][] {
    return this.#peers.flatMap((peer, number) => (peer?.present === true ? [[`p${number}`, peer]] : []));
  }

  /** Runs the program with each step at an arbitrary moment, then lets everything settle. */
  async run(program: readonly Step[]): Promise<number> {
    for (const { peer, operation } of program) this.lanes.push('users', () => this.#operate(peer, operation));
    let steps = 0;
    while (this.lanes.step(this.choose)) {
      steps += 1;
      if (steps > 200_000) throw new Error('it never comes to rest');
      await new Promise(setImmediate);
    }
    return steps;
  }

  #join(number: number): void {
    const existing = this.#peers[number];
    if (existing?.attached === true) return existing.connect({ name: number });
    const peer = new SimulatedPeer({
      id: `p${number}`,
      room: this.room,
      lanes: this.lanes,
      choose: this.choose,
      complain: (what) => this.complaints.push(what),
    });
    this.#peers[number] = peer;
    return peer.connect({ name: number });
  }

  #operate(number: number, operation: Operation): void {
    const peer = this.#peers[number];
    if (peer?.present !== true) {
      if (operation.do === 'join') this.#join(number);
      return;
    }
    // Applications add tracks only once they have joined.
    if (!peer.joined && operation.do !== 'leave' && operation.do !== 'lose') {
      this.lanes.push('users', () => this.#operate(number, operation));
      return;
    }
    const remote = Object.values(peer.sdk.getRemoteTracks());
    switch (operation.do) {
      case 'add':
        return peer.add(operation.kind);
      case 'remove':
        return peer.remove(operation.index);
      case 'replace':
        return peer.replace(operation.index);
      case 'describe': {
        const trackId = peer.localTrackIds[operation.index % (peer.localTrackIds.length || 1)];
        if (trackId !== undefined) peer.sdk.updateTrackMetadata(trackId, { updated: ++this.#renames });
        return undefined;
      }
      case 'target': {
        const track = remote[operation.index % (remote.length || 1)];
        if (track?.simulcastConfig.enabled === true) peer.sdk.setTargetTrackEncoding(track.trackId, 'l');
        return undefined;
      }
      case 'rename':
        return peer.sdk.updateEndpointMetadata({ renamed: ++this.#renames });
      case 'leave':
        return peer.leave(false);
      case 'lose':
        return peer.leave(true);
      case 'join':
        return undefined;
    }
  }
}

/** Checks the invariants that hold once nothing is in progress. */
function expectSettled(world: World): void {
  expect(world.complaints).toEqual([]);
  const present = world.present();
  expect(world.room.ids().toSorted()).toEqual(present.map(([id]) => id));
  for (const [id, peer] of present) {
    expect([id, peer.promisesPending, [...peer.timers]]).toEqual([id, 0, []]);
    expect(peer.sdk.ongoingRenegotiation).toBe(false);
    expect(peer.sdk.commandsQueue).toHaveLength(0);
    const published = [...peer.sdk.localTrackIdToTrack].map(([trackId, { metadata }]) => [trackId, metadata]);
    const known = world.room.endpoint(id).tracks.map((track) => [track.trackId, track.metadata]);
    expect(known.toSorted()).toEqual(published.toSorted());

    const others = present.filter(([other]) => other !== id);
    const expected = others.flatMap(([, other]) =>
      [...other.sdk.localTrackIdToTrack].map(([trackId, { track, metadata }]) => [trackId, track?.kind, metadata]),
    );
    // A context has a track once its `trackReady` has fired.
    const received = Object.values(peer.sdk.getRemoteTracks()).map((c) => [c.trackId, c.track?.kind, c.metadata]);
    expect(received.toSorted()).toEqual(expected.toSorted());
    expect(Object.keys(peer.sdk.getRemoteEndpoints()).toSorted()).toEqual(others.map(([other]) => other));
    for (const context of Object.values(peer.sdk.getRemoteTracks())) {
      const transceiver = peer.sdk.connection?.transceivers.find(({ receiver }) => receiver.track === context.track);
      expect(transceiver?.currentDirection).toBe('recvonly');
    }
  }
}

describe('clients with the published SDK in one room', () => {
  test('resolves all promises and shows all clients the same tracks, however messages interleave', async () => {
    const step = fc.record({ peer: fc.nat(2), operation });
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.array(step, { minLength: 5, maxLength: 60 }), async (seed, program) => {
        const world = new World(seed, 3);
        await world.run(program);
        expectSettled(world);
      }),
      { numRuns: fuzzRuns(120) },
    );
  }, 60_000);
});
