// Tests what a call survives, and how long its picture stands still.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { Api } from '../harness/api.js';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { nodeForFirefox } from '../harness/firefox.js';
import { type BrowserName, launchLaptop } from '../harness/laptop.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { labUnavailable, Lab } from '../hosts/lab.js';
import { browserSuite } from '../harness/stage.js';
import { Person, playing } from './person.js';

/** Connects two people who publish and see each other. */
async function seeEachOther(ann: Person, bob: Person): Promise<void> {
  await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 20 }));
  await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 20 }));
  await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
}

/** Carries out `event`. Returns the longer standstill of the two pictures, in ms. */
async function standstill(ann: Person, bob: Person, event: () => unknown): Promise<number> {
  for (const { page } of [ann, bob]) await page.evaluate(() => window.application.resetPauses());
  await event();
  const longest = Math.max(...(await Promise.all([ann.standstill(), bob.standstill()])));
  for (const person of [ann, bob]) {
    const [{ frames = 0 } = {}] = await person.sees(([track]) => track !== undefined);
    await person.sees(([track]) => (track?.frames ?? 0) > frames + 10);
  }
  return longest;
}

const BROWSERS: readonly BrowserName[] = ['Chromium', 'Firefox'];

// How the client returns hardly depends on the browser, so Firefox is for the night.
describe.each(nightly ? BROWSERS : BROWSERS.slice(0, 1))('In %s', (browser) =>
  browserSuite('A call survives', { firefox: browser === 'Firefox' }, (stage) => {
    describe('a node', () => {
      const nodes: BloomNode[] = [];
      afterEach(() => Promise.all(nodes.splice(0).map((node) => node.stop())));

      test.each([
        ['restarted at its address', true],
        ['that is gone, with another one in its place', false],
      ])('%s', async (title, atItsAddress) => {
        const own = { JF_PORT: String(await freeTcpPort()), JF_SECRET_KEY_BASE: 'e2e-secret-key-base' };
        const env = { ...nodeForFirefox(), ...own };
        let node = await startNode({ env });
        nodes.push(node);
        const roomId = 'survivors';
        /** Acts as the application's backend. */
        const seat = async (): Promise<{ url: string; id: string; token: string }> => {
          const api = new Api(node.url);
          // An existing room is fine too.
          await api.request('POST', '/room', { roomId });
          return { url: node.host, ...(await api.addPeer(roomId)) };
        };
        const reasons: string[] = [];
        const enter = async (name: string): Promise<Person> => {
          const page = await stage.newPage();
          await page.exposeFunction('renew', async (code: string) => {
            reasons.push(code);
            // A start may take longer than the client waits before it asks for another node, which does not exist here.
            if (atItsAddress && code === 'UNREACHABLE') throw new Error('no other node');
            return seat();
          });
          await page.goto(stage.urlOf('client'));
          const { url, ...peer } = await seat();
          return Person.join(page, peer, { url, name });
        };
        const [ann, bob] = [await enter('ann'), await enter('bob')];
        await seeEachOther(ann, bob);

        const other = atItsAddress ? undefined : await startNode({ env: nodeForFirefox() });
        if (other !== undefined) nodes.push(other);
        let downMs = 0;
        const pause = await standstill(ann, bob, async () => {
          await node.kill();
          const begun = performance.now();
          node = other ?? (await startNode({ env }));
          downMs = performance.now() - begun;
          nodes.push(node);
          for (const { page } of [ann, bob]) {
            await page.waitForFunction(
              () => window.application.log.filter((line) => line === 'connected').length === 2,
            );
          }
        });
        // Two pauses of at most 2 s, for the attempt that reaches the node and for the new seat, or 3 s until a node
        // counts as gone. The rest is the time to set up the call on a slow machine.
        promise(`pause with a node ${title}, beyond the time it was down`, pause - downMs, 10_000);
        // The first to return finds no room; the other may find a new room that does not know its token.
        const refused = reasons.filter((code) => code !== 'UNREACHABLE');
        expect(refused[0]).toBe(atItsAddress ? 'ROOM_ENDED' : undefined);
        const names = await ann.page.evaluate(() => window.application.client.peers.map(({ metadata }) => metadata));
        expect(names).toEqual([{ name: 'bob' }]);
        for (const { page } of [ann, bob]) await page.close();
      });
    });

    test('a laptop that sleeps for a minute', async () => {
      const laptop = await launchLaptop(browser);
      try {
        const room = await stage.room();
        const host = stage.node.host;
        const ann = await Person.join(await stage.page('client'), await stage.api.addPeer(room), {
          url: host,
          name: 'ann',
        });
        const bob = await Person.join(await laptop.open(stage.urlOf('client')), await stage.api.addPeer(room), {
          url: host,
          name: 'bob',
        });
        await seeEachOther(ann, bob);
        const asleepMs = 60_000;
        const pause = await standstill(ann, bob, async () => {
          laptop.signal('SIGSTOP');
          await delay(asleepMs);
          laptop.signal('SIGCONT');
        });
        promise('pause after a minute of sleep', pause - asleepMs, 10_000);
        expect(await ann.page.evaluate(() => window.application.client.state)).toBe('connected');
        await ann.page.close();
      } finally {
        await laptop.close();
      }
    }, 180_000);
  }),
);

// The suite skips itself, loudly, without namespaces.
const lab = labUnavailable() === undefined ? await Lab.open() : undefined;
const own = lab?.ownAddress ?? '';

browserSuite(
  'A call survives another network',
  {
    needs: ['network namespaces', 'firefox'],
    pagesAt: own,
    node: {
      env: {
        JF_IP: '0.0.0.0',
        JF_SERVER_API_TOKEN: apiToken,
        JF_WEBRTC_TURN_IP: own,
        JF_WEBRTC_TURN_LISTEN_IP: own,
      },
    },
  },
  (stage) => {
    afterAll(() => lab?.close());

    test.each(BROWSERS)('keeps a call in %s after a change of address', async (browser) => {
      const host = lab?.addHost(`${browser.toLowerCase()}.lab.test`);
      if (host === undefined) throw new Error('the lab is not open');
      const commandOf = (program: string): readonly string[] => host.commandOf(program);
      const laptop = await launchLaptop(browser, { commandOf, trusted: new URL(stage.urlOf('client')) });
      try {
        const room = await stage.room();
        const url = stage.node.host.replace('127.0.0.1', own);
        const enter = async (name: string): Promise<Person> =>
          Person.join(await laptop.open(stage.urlOf('client')), await stage.api.addPeer(room), { url, name });
        const [ann, bob] = [await enter('ann'), await enter('bob')];
        await seeEachOther(ann, bob);
        const pause = await standstill(ann, bob, () =>
          host.moveTo(own.replace(/\d+$/, browser === 'Firefox' ? '78' : '77')),
        );
        promise(`pause with another network in ${browser}`, pause, 10_000);
      } finally {
        await laptop.close();
      }
    });
  },
);
