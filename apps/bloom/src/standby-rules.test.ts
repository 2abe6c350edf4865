// The rules of histories notice what goes wrong when every node has a fault.
import { describe, expect, test } from '@jest/globals';
import { STANDBY_FAULTS } from './testing/simulation/planted-standby-faults.js';
import { RECEIVER } from './testing/simulation/receivers.js';
import { cluster, cut, node, on, open, silentSocket, start, untilOn } from './testing/standby-cluster.js';

describe('a rule is broken when', () => {
  test('an owner believes that every member supports it', async () => {
    await start(3, { fault: STANDBY_FAULTS.believesInSupport });
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    const { token } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    cut('n1');
    await untilOn(standby, 'kitchen', 10_000);
    await on(owner, () => owner.rooms.attachPeer(token, silentSocket()));
    expect(cluster.violations).toEqual([
      expect.stringMatching(/took room kitchen over, although n1@n1.sim acts for it/),
      expect.stringMatching(/published peerConnected of room kitchen, which/),
    ]);
  });

  test('a standby needs no votes', async () => {
    await start(3, { fault: STANDBY_FAULTS.needsNoVotes });
    const standby = await open(node('n1'), 'kitchen');
    cut(standby);
    await untilOn(standby, 'kitchen', 10_000);
    expect(cluster.violations).toEqual([
      expect.stringMatching(/took room kitchen over, although n1@n1.sim acts for it/),
    ]);
  });

  test('a standby gets no votes', async () => {
    await start(3, { fault: STANDBY_FAULTS.getsNoVotes });
    await open(node('n1'), 'kitchen');
    cluster.kill(node('n1'), true);
    await cluster.world.run(10_000);
    expect(cluster.violations).toEqual([expect.stringMatching(/^nobody took room kitchen over/)]);
  });

  test.each([
    ['postsTwice', /an event twice or out of order from n1/],
    ['postsNothing', /did not get peerAdded after a takeover/],
  ] as const)('a node of a room that is taken over %s', async (fault, rule) => {
    await start(3, { fault: STANDBY_FAULTS[fault] });
    const standby = await open(node('n1'), 'kitchen', RECEIVER);
    cluster.kill(node('n1'), true);
    await untilOn(standby, 'kitchen', 1_000);
    await on(node(standby), () => node(standby).rooms.addPeer('kitchen', {}));
    await cluster.world.run(10_000);
    cluster.events.end(new Set(['kitchen']));
    expect(cluster.violations).toEqual([expect.stringMatching(rule)]);
  });
});
