import { expect, test } from '@jest/globals';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import type { Peer } from '../harness/peer.js';

/** Runs of each race: a single one may pass by luck. */
const ROUNDS = nightly ? 20 : 2;

function race(title: string, body: () => Promise<void>): void {
  for (let round = 1; round <= ROUNDS; round += 1) test(`${title} (round ${round})`, body);
}

/** Checks that a call survived a race intact: one more track gets through, and nothing else is left over. */
async function endsWith(sender: Peer, receiver: Peer, trackIds: readonly string[]): Promise<void> {
  const last = await sender.addVideo({ colour: 'cyan' });
  await receiver.hasExactly([...trackIds, last]);
  await receiver.plays(last, 'cyan');
}

browserSuite('Races', {}, (stage) => {
  race('two tracks added at once arrive as two different tracks', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const sources = [await ann.picture({ colour: 'red' }), await ann.picture({ colour: 'green' })];
    const [red = '', green = ''] = await ann.call('addTracks', sources);

    expect(red).not.toBe(green);
    await Promise.all([bob.plays(red, 'red'), bob.plays(green, 'green')]);
    await bob.hasExactly([red, green]);
  });

  race('a late joiner gets tracks that were added one after the other', async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await ann.join();
    const red = await ann.addVideo({ colour: 'red' });
    const green = await ann.addVideo({ colour: 'green' });
    await bob.join();

    await Promise.all([bob.plays(red, 'red'), bob.plays(green, 'green')]);
    await bob.hasExactly([red, green]);
  });

  race('everybody ends with the right set when one peer adds two tracks while another removes one', async () => {
    const { ann, bob, carl } = await stage.call(['ann', 'bob', 'carl']);
    const red = await ann.addVideo({ colour: 'red' });
    await Promise.all([bob.ready(red), carl.ready(red)]);
    const sources = [await bob.picture({ colour: 'blue' }), await bob.picture({ colour: 'yellow' })];

    const [added] = await Promise.all([bob.call('addTracks', sources), ann.call('removeTrack', red)]);

    await Promise.all([ann.hasExactly(added), bob.hasExactly([]), carl.hasExactly(added)]);
    await Promise.all([ann.plays(added[0] ?? '', 'blue'), carl.plays(added[1] ?? '', 'yellow')]);
  });

  race('a track replaced while it is being added arrives with the new picture', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const [red, green] = [await ann.picture({ colour: 'red' }), await ann.picture({ colour: 'green' })];
    const track = await ann.call('addTrackNow', red);
    await ann.call('replaceTrack', track, green);

    await bob.plays(track, 'green');
    await endsWith(ann, bob, [track]);
  });

  race('a track removed while it is being added comes and goes', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const track = await ann.call('addTrackNow', await ann.picture({ colour: 'red' }));
    await ann.call('removeTrack', track);

    await bob.removed(track);
    await endsWith(ann, bob, []);
  });

  race('two tracks added, replaced and removed without waiting leave nothing behind', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const pictures = await Promise.all(
      (['red', 'green', 'blue', 'yellow'] as const).map((colour) => ann.picture({ colour })),
    );
    const [a = 0, b = 0, c = 0, d = 0] = pictures;
    await Promise.all([ann.call('addReplaceRemove', a, b), ann.call('addReplaceRemove', c, d)]);

    await endsWith(ann, bob, []);
  });

  race('a peer that adds its track in the handler of joined, in a room with tracks, is seen and sees', async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await ann.join();
    const red = await ann.addVideo({ colour: 'red' });
    const source = await bob.picture({ colour: 'blue' });
    await bob.join({ addOnJoined: { source, options: {} } });

    await bob.plays(red, 'red');
    await ann.until('the track of bob is there', () => ann.present().length === 1);
    await ann.plays(ann.present()[0]?.id ?? '', 'blue');
  });

  race('ten rounds of adding and removing leave both sides able to continue', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    for (let round = 0; round < 10; round += 1) {
      const track = await ann.addVideo({ colour: 'red', fps: 5 });
      await bob.ready(track);
      await ann.call('removeTrack', track);
    }
    await endsWith(ann, bob, []);

    const [sender, receiver] = [await ann.call('connection'), await bob.call('connection')];
    expect(sender?.transceivers.filter((t) => t.endsWith('sendonly'))).toHaveLength(1);
    expect(receiver?.transceivers.length).toBeLessThanOrEqual(11);
  });

  race('a peer that leaves while the others negotiate does not stop them', async () => {
    const { ann, bob, carl } = await stage.call(['ann', 'bob', 'carl']);
    const red = await ann.addVideo({ colour: 'red' });
    await Promise.all([bob.ready(red), carl.ready(red)]);
    const source = await bob.picture({ colour: 'blue' });
    const [blue] = await Promise.all([bob.call('addTrack', source), ann.call('disconnect')]);

    await Promise.all([bob.next('peerLeft', (e) => e.peer.id === ann.id), carl.plays(blue, 'blue')]);
    await Promise.all([bob.hasExactly([]), carl.hasExactly([blue])]);
    await endsWith(carl, bob, []);
  });

  race('a peer that leaves between the announcement of its track and the answer leaves nothing behind', async () => {
    const { ann, bob, carl } = await stage.call(['ann', 'bob', 'carl']);
    const red = await ann.call('addTrackNow', await ann.picture({ colour: 'red' }));
    await bob.next('trackAdded', (e) => e.track.trackId === red);
    await ann.call('disconnect');

    await Promise.all([bob, carl].map((peer) => peer.next('peerLeft', (e) => e.peer.id === ann.id)));
    await endsWith(bob, carl, []);
    await endsWith(carl, bob, []);
  });
});
