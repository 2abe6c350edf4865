import { describe, expect, test } from '@jest/globals';
import { Person, playing } from '../client/person.js';
import { nodeForFirefox } from '../harness/firefox.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { livekitNode, Participant } from './participant.js';

let rooms = 0;

async function join(stage: Stage, room: string, identity: string): Promise<Participant> {
  return Participant.join(await stage.page('livekit'), { url: stage.node.url.replace('http', 'ws'), room, identity });
}

function newRoom(): string {
  rooms += 1;
  return `livekit-${rooms}`;
}

describe.each([
  ['Chromium', false],
  ['Firefox', true],
])('livekit-client in %s', (_browser, firefox) => {
  const env = { ...livekitNode, ...(firefox ? nodeForFirefox() : {}) };

  browserSuite('a call', { firefox, node: { env } }, (stage) => {
    test('lets two people see and hear each other', async () => {
      const room = newRoom();
      const ann = await join(stage, room, 'ann');
      const bob = await join(stage, room, 'bob');
      await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
      await ann.page.evaluate(() => window.livekit.publishTone(440));
      await bob.page.evaluate(() => window.livekit.publish({ colour: 'blue' }));

      const red = await bob.plays('red', 'ann');
      expect(red).toMatchObject({ source: 'camera', muted: false, subscribed: true });
      await ann.plays('blue', 'bob');
      await bob.hears(440, 'ann');
    });

    test("lets people with LiveKit's clients and people with ours meet in one room", async () => {
      const room = newRoom();
      const ann = await join(stage, room, 'ann');
      const person = await Person.join(await stage.page('client'), await stage.api.addPeer(room), {
        url: stage.node.host,
        name: 'paul',
      });
      const eve = await stage.peer(room, 'eve');
      await eve.join();

      await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
      await person.page.evaluate(() => window.application.publish({ colour: 'green' }));
      await eve.addVideo({ colour: 'blue' });
      await eve.addTone(880);

      await ann.plays('green', person.id);
      await ann.plays('blue', eve.id);
      await ann.hears(880, eve.id);
      const seen = await person.sees(playing('red'));
      await eve.plays(seen.find(({ colour }) => colour === 'red')?.id ?? '', 'red');
      const names = await ann.page.evaluate(() => window.livekit.participants().map(({ name }) => name));
      expect(names.toSorted()).toEqual(['eve', 'paul']);
    });
  });
});
