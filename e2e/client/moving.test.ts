// Calls with @bloom/client go on while their room moves between three nodes behind haproxy.
import { expect, test } from '@jest/globals';
import { LABELS, type Label } from '../bloomctl/trio.js';
import { BalancedTrio } from '../cluster/balanced-trio.js';
import { until } from '../cluster/until.js';
import { decodeOnly } from '../harness/decode-only.js';
import { middle, promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { Person, playing } from './person.js';

const MOVES = nightly ? 20 : 3;
/** After that, the former node may take a room back. */
const AWAY_MS = 10_500;

let trio: BalancedTrio;
const start = async () => {
  // The 8 s without a drain timeout are a matter of the machine's speed.
  trio = await BalancedTrio.start({ JF_DRAIN_MODE: 'move', JF_DRAIN_TIMEOUT: '60' });
  return trio.asNode();
};

browserSuite('A room that moves behind a load balancer', { needs: ['haproxy'], node: start }, (stage) => {
  const enter = async (room: string, name: string, words?: string): Promise<Person> => {
    const page = await stage.page('client');
    if (words !== undefined) await page.evaluate((phrase) => window.application.encrypt(phrase), words);
    return Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
  };
  const left = new Map<string, number>();

  /** Moves the room to the next node, and waits until each of its people sees the others over there. */
  async function move(room: string, people: readonly Person[]): Promise<void> {
    const from = (await trio.ownerOf(room)) ?? 'a';
    const to = LABELS[(LABELS.indexOf(from) + 1) % LABELS.length] as Label;
    const wait = (left.get(`${room} ${to}`) ?? -Infinity) + AWAY_MS - performance.now();
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    for (const { page } of people) {
      await page.evaluate(() => {
        const { client } = window.application;
        Object.assign(window, { followed: false });
        const stop = client.on('trackReady', () => {
          Object.assign(window, { followed: true });
          stop();
        });
        window.application.resetPauses();
      });
    }
    await until('the room has moved', async () => {
      const { status, body } = await trio.api(from).request('POST', `/room/${room}/move`, { node: trio.name(to) });
      if (status !== 200) throw new Error(body.errors);
      return true;
    });
    left.set(`${room} ${from}`, performance.now());
    for (const { page } of people) await page.waitForFunction(() => 'followed' in window && window.followed === true);
    // The former connections end when everybody has followed.
    await new Promise((done) => setTimeout(done, 1_500));
  }

  test(
    'shows pictures that hardly stop, and nobody who leaves or comes',
    async () => {
      const room = await stage.api.createRoom();
      const people = [await enter(room, 'ann'), await enter(room, 'bob')] as const;
      const [ann, bob] = people;
      await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 20 }));
      await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 20 }));
      await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
      const logs = await Promise.all(people.map(({ page }) => page.evaluate(() => window.application.log)));

      const pauses: number[] = [];
      for (let i = 0; i < MOVES; i += 1) {
        await move(room, people);
        await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
        for (const person of people) pauses.push(await person.longestPause());
      }
      process.stderr.write(`\npauses of ${MOVES} moves, ms: ${pauses.map(Math.round).join(' ')}\n`);
      for (const [i, { page }] of people.entries()) {
        expect(await page.evaluate(() => window.application.log)).toEqual(logs[i]);
      }
      promise('pause of a picture whose room moves, @bloom/client, median', middle(pauses), 1_000);
      promise('pause of a picture whose room moves, @bloom/client, worst', Math.max(...pauses), 3_000);
      await stage.api.deleteRoom(room);
    },
    nightly ? 300_000 : 90_000,
  );

  test('delivers each message once, and keeps an encrypted and muted track so', async () => {
    const room = await stage.api.createRoom();
    const people = [await enter(room, 'ann', 'red apple'), await enter(room, 'bob', 'red apple')] as const;
    const [ann, bob] = people;
    await ann.page.evaluate(() => window.application.publish({ colour: 'red' }));
    await bob.page.evaluate(() => window.application.publish({ colour: 'blue' }));
    const [own] = await ann.sees(playing('blue'));
    await bob.sees(playing('red'));
    await ann.page.evaluate(() => window.application.local(0).mute());
    const muted = (): Promise<boolean[]> =>
      bob.page.evaluate(() => window.application.client.peers.flatMap(({ tracks }) => tracks.map((one) => one.muted)));
    await until('bob knows', async () => (await muted())[0]);
    await bob.page.evaluate(() => {
      const changes: string[] = [];
      Object.assign(window, { changes });
      for (const event of ['muted', 'unmuted'] as const) window.application.client.on(event, () => changes.push(event));
    });
    await bob.page.evaluate(() => window.application.client.openData('chat'));

    const sending = ann.page.evaluate(async () => {
      for (let i = 0; i < 200; i += 1) {
        await window.application.client.sendData('chat', String(i));
        await new Promise((done) => setTimeout(done, 20));
      }
    });
    await until('messages flow', () =>
      bob.page.evaluate(() => window.application.log.some((line) => line.startsWith('data chat'))),
    );
    const from = await trio.ownerOf(room);
    // Ann sees bob; bob sees nothing of ann.
    await move(room, [ann]);
    expect(await trio.ownerOf(room)).not.toBe(from);
    await sending;
    await bob.log(`data chat ${ann.id} 199`);
    const heard = await bob.page.evaluate(() => window.application.log.filter((line) => line.startsWith('data chat')));
    expect(heard).toEqual(Array.from({ length: 200 }, (_, i) => `data chat ${ann.id} ${i}`));
    expect(await muted()).toEqual([true]);
    expect(await bob.page.evaluate(() => (window as unknown as { changes: string[] }).changes)).toEqual([]);
    expect(await ann.sees(playing('blue'))).toMatchObject([{ id: own?.id, unavailable: null }]);
    await ann.page.evaluate(() => window.application.local(0).unmute());
    await bob.sees(playing('red'));
    await stage.api.deleteRoom(room);
  }, 90_000);

  test('delivers what somebody sends over the former connection for longer than the others', async () => {
    const room = await stage.api.createRoom();
    const people = [await enter(room, 'ann'), await enter(room, 'bob')] as const;
    const [ann, bob] = people;
    await bob.page.evaluate(() => window.application.publish({ colour: 'blue' }));
    await ann.sees(playing('blue'));
    for (const { page } of people) await page.evaluate(() => window.application.client.openData('chat'));
    // Ann's page stands still when she has followed, and sends meanwhile: she hears late that the others have, too.
    await ann.page.evaluate(() => {
      const { client } = window.application;
      const stop = client.on('trackReady', () => {
        stop();
        const began = performance.now();
        for (let i = 0; i < 30; i += 1) {
          while (performance.now() < began + 100 * (i + 1));
          void client.sendData('chat', String(i));
        }
      });
    });
    await move(room, [ann]);
    await bob.log(`data chat ${ann.id} 29`);
    const heard = await bob.page.evaluate(() => window.application.log.filter((line) => line.startsWith('data chat')));
    expect(heard).toEqual(Array.from({ length: 30 }, (_, i) => `data chat ${ann.id} ${i}`));
    await stage.api.deleteRoom(room);
  }, 60_000);

  test('keeps the second encoding for somebody who lacks the first codec of a track', async () => {
    const room = await stage.api.createRoom();
    const ann = await enter(room, 'ann');
    const page = await stage.page('client');
    await decodeOnly(page, 'video/VP8', 'video/H264');
    const cat = await Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name: 'cat' });
    const codecs = (): Promise<(string | null)[]> => page.evaluate(() => window.application.codecs());
    await ann.page.evaluate(() =>
      window.application.publish({ colour: 'red', fps: 20 }, { codecs: ['vp9', 'vp8'], simulcast: false }),
    );
    const [before] = await cat.sees(playing('red'));
    expect(await codecs()).toEqual(['video/VP8']);
    await move(room, [cat]);
    const [after] = await cat.sees(playing('red'));
    expect(after?.id).toBe(before?.id);
    expect(await codecs()).toEqual(['video/VP8']);
    const sent = (): Promise<readonly number[]> => ann.page.evaluate(() => window.application.sent());
    const [first = 0, second = 0] = await sent();
    await until('both encodings flow', async () => {
      const [one = 0, other = 0] = await sent();
      return one > first && other > second;
    });

    // Nobody needs it at the new owner any more.
    await page.evaluate(() => window.application.client.leave());
    await until('the second encoding stops', async () => {
      const [, then = 0] = await sent();
      await ann.page.waitForTimeout(1_000);
      return (await sent())[1] === then;
    });
    await stage.api.deleteRoom(room);
  }, 60_000);
});
