// The scenarios with media once more: every second transport of a room is on the other one of two media workers.
import { expect, test } from '@jest/globals';
import { nodesUnderTest } from '../harness/bloom-node.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';

nodesUnderTest.spanWorkers = true;

browserSuite('A room on two media workers', {}, (stage) => {
  test('tells its peers different media ports, and each of them sees the other two', async () => {
    const { ann, bob, eve } = await stage.call(['ann', 'bob', 'eve']);
    const shown = [
      [ann, await ann.addVideo({ colour: 'red' }), 'red'],
      [bob, await bob.addVideo({ colour: 'green' }), 'green'],
      [eve, await eve.addVideo({ colour: 'blue' }), 'blue'],
    ] as const;
    for (const viewer of [ann, bob, eve])
      for (const [publisher, track, colour] of shown) if (publisher !== viewer) await viewer.plays(track, colour);
    expect(bob.announcedPort).not.toBe(ann.announcedPort);
    expect(eve.announcedPort).toBe(ann.announcedPort);
  });
});

const byDay = ['basics', 'replace-mute'];
/** By night only: they take minutes on two cores. */
const byNight = [
  'call-tiles',
  'data-channels',
  'guests',
  'lifecycle',
  'metadata',
  'moderation',
  'races',
  'renamed-sdk',
  'simulcast',
];
for (const file of [...byDay, ...(nightly ? byNight : [])]) await import(`./${file}.test.js`);
