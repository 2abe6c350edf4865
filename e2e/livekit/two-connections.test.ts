// livekit-client as older clients join: version 0 of the signalling, with a connection for each direction.
import { describe, expect, test } from '@jest/globals';
import { nodeForFirefox } from '../harness/firefox.js';
import { nightly } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { livekitNode, Participant } from './participant.js';

let rooms = 0;

const newRoom = (): string => `two-${++rooms}`;

interface Place {
  room: string;
  options?: { singlePeerConnection?: boolean };
}

const OLD = { singlePeerConnection: false };

async function join(stage: Stage, identity: string, { room, options = OLD }: Place): Promise<Participant> {
  const url = stage.node.url.replace('http', 'ws');

  return Participant.join(await stage.page('livekit'), { url, room, identity, options });
}

/** By night both, by day the first. */
const BROWSERS = [
  ['Chromium', false],
  ['Firefox', true],
] as const;

describe.each(nightly ? BROWSERS : BROWSERS.slice(0, 1))(
  'livekit-client with two connections in %s',
  (_browser, firefox) => {
    const env = { ...livekitNode, ...(firefox ? nodeForFirefox() : {}) };

    browserSuite('a call', { firefox, node: { env } }, (stage) => {
      test('lets people with one and with two connections see and hear each other', async () => {
        const room = newRoom();
        const ann = await join(stage, 'ann', { room });
        const bob = await join(stage, 'bob', { room, options: {} });
        await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
        await ann.page.evaluate(() => window.livekit.publishTone(440));
        await bob.page.evaluate(() => window.livekit.publish({ colour: 'blue' }));
        await bob.page.evaluate(() => window.livekit.publishTone(880));

        const red = await bob.plays('red', 'ann');
        expect(red).toMatchObject({ source: 'camera', muted: false, subscribed: true });
        await ann.plays('blue', 'bob');
        await bob.hears(440, 'ann');
        await ann.hears(880, 'bob');
      });

      test('passes data both ways', async () => {
        const room = newRoom();
        const ann = await join(stage, 'ann', { room });
        const bob = await join(stage, 'bob', { room });
        for (const reliable of [true, false]) {
          await ann.page.evaluate(
            (kind) => window.livekit.publishData('hello', { reliable: kind, topic: 't' }),
            reliable,
          );
          await bob.logged(`data ann ${reliable ? 0 : 1} t hello`);
        }
        expect(await bob.page.evaluate(() => window.livekit.callRpc('ann', 'hi'))).toBe('hi, bob');
      });
    });
  },
);

browserSuite('two connections with Bloom', { node: { env: livekitNode } }, (stage) => {
  test('show eight pictures, and reuse sections of those that ended', async () => {
    const room = newRoom();
    const ann = await join(stage, 'ann', { room });
    const bob = await join(stage, 'bob', { room });
    for (let i = 0; i < 8; i++) await ann.page.evaluate(() => window.livekit.publish({ colour: 'red', width: 160 }));
    await bob.sees((tracks) => tracks.length === 8 && tracks.every(({ frames }) => frames > 3));
    for (let i = 0; i < 4; i++) await ann.page.evaluate((at) => window.livekit.unpublish(at), i);
    await bob.sees((tracks) => tracks.length === 4);
    for (let i = 0; i < 4; i++) await ann.page.evaluate(() => window.livekit.publish({ colour: 'blue', width: 160 }));
    await bob.sees((tracks) => tracks.filter(({ colour, frames }) => colour === 'blue' && frames > 3).length === 4);
  });

  test('resume when the websocket is lost, and keep sending and receiving', async () => {
    const room = newRoom();
    const ann = await join(stage, 'ann', { room });
    const bob = await join(stage, 'bob', { room });
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await bob.page.evaluate(() => window.livekit.publish({ colour: 'blue' }));
    await ann.plays('blue', 'bob');
    const sid = await ann.page.evaluate(() => window.livekit.own().sid);
    await ann.page.evaluate(() => window.livekit.loseSocket());
    await ann.logged('reconnected');
    expect(await ann.page.evaluate(() => window.livekit.own().sid)).toBe(sid);
    const [before] = await ann.page.evaluate(() => window.livekit.tracks());
    await ann.sees(([track]) => (track?.frames ?? 0) > (before?.frames ?? 0) + 10);
    const [seen] = await bob.page.evaluate(() => window.livekit.tracks());
    await bob.sees(([track]) => (track?.frames ?? 0) > (seen?.frames ?? 0) + 10);
  });
});
