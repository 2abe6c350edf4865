// Runs docs/guide/debugging.md and shell.md. `npm run generate:debugging` rewrites the pages and their pictures; the
// nightly run compares them with the programs' current output.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { apiToken } from '../harness/bloom-node.js';
import { describeWith } from '../harness/needs.js';
import type { Peer } from '../harness/peer.js';
import { repository } from '../harness/processes.js';
import { Stage } from '../harness/stage.js';
import { FullScreen, paint } from './picture.js';
import { play, sessionsOf, shapeOf, type Stagehand, withSessions } from './guide.js';
import { secrets, Trio } from './trio.js';

jest.setTimeout(300_000);

/** In the order in which their sessions follow each other: the second one removes a person. */
const PAGES = ['debugging', 'shell'] as const;
const fileOf = (page: string): string => join(repository, 'docs', 'guide', `${page}.md`);
const writes = process.env['BLOOM_WRITE_GUIDE'] === '1';

test.each(PAGES)('has sessions in the guide %s', (page) => {
  expect(sessionsOf(readFileSync(fileOf(page), 'utf8')).length).toBeGreaterThan(6);
});

describeWith(writes ? ['chromium'] : ['nightly', 'chromium'], 'the guide to debugging', () => {
  let trio: Trio;
  const resources = mkdtempSync(join(tmpdir(), 'bloomctl-resources-'));
  let stage: Stage;
  let hand: Stagehand;
  let stopTraffic: () => Promise<void> = () => Promise.resolve();

  beforeAll(async () => {
    // What a node that crashed has left of a recording, long enough ago not to be in progress.
    const folder = join(resources, 'raw_recordings', 'attic', 'part_2026-01-02T03-04-05.000Z');
    mkdirSync(folder, { recursive: true });
    const before = Date.now() / 1_000 - 600;
    writeFileSync(join(folder, 'track.rtpx'), Buffer.alloc(1_204_000));
    for (const path of [join(folder, 'track.rtpx'), folder]) utimesSync(path, before, before);
    trio = await Trio.start({ c: { JF_RESOURCES_BASE_PATH: resources } });
    stage = new Stage({ node: () => Promise.resolve({ ...trio.nodes.a, stop: () => Promise.resolve() }) });
    await stage.open();
    // The kitchen goes to a, since all nodes are empty; the others go to the least loaded.
    await trio.request('a', 'POST /room', { roomId: 'kitchen', videoCodec: 'vp8' });
    for (const roomId of ['hall', 'garden']) await trio.request('b', 'POST /room', { roomId });
    const registrarCredentials = { address: '127.0.0.1:9', username: 'desk', password: secrets.sipPassword };
    await trio.request('b', 'POST /room/kitchen/component', { type: 'sip', options: { registrarCredentials } });
    const [ann, bob] = [await takeSeat('ann'), await takeSeat('bob')];
    await bob.plays(await ann.addVideo({ colour: 'red' }), 'red');
    await ann.plays(await bob.addVideo({ colour: 'blue' }), 'blue');
    const names = new Map([
      ['ann', ann.id],
      ['bob', bob.id],
      ['url', trio.nodes.a.url],
    ]);
    writeFileSync(join(trio.folder, 'token'), apiToken, { mode: 0o600 });
    hand = { names, actions: { traffic, quiet: () => stopTraffic(), request } };

    function traffic(): void {
      let going = true;
      const done = (async () => {
        while (going) {
          const added = await trio.json('b', 'POST /room/kitchen/peer', { type: 'webrtc', options: {} });
          await trio.request('b', `DELETE /room/kitchen/peer/${added.data?.peer.id}`);
          await new Promise((resolve) => setTimeout(resolve, 150));
        }
      })();
      stopTraffic = async () => {
        going = false;
        await done;
      };
    }
    async function request(): Promise<void> {
      const answer = await trio.request('c', 'POST /room/kitchen/peer', { type: 'webrtc', options: {} });
      names.set('request', answer.headers.get('x-request-id') ?? 'none');
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }, 180_000);
  afterAll(async () => {
    await stopTraffic();
    await stage?.close();
    await trio?.stop();
    rmSync(resources, { recursive: true, force: true });
  });

  async function takeSeat(name: string): Promise<Peer> {
    const peer = await stage.seat(await trio.api('a').addPeer('kitchen'), name);
    await peer.join();
    return peer;
  }

  test.each(PAGES)('shows the current output of the programs in %s', async (name) => {
    const file = fileOf(name);
    const page = readFileSync(file, 'utf8');
    const sessions = sessionsOf(page);
    const texts: string[] = [];
    for (const { steps } of sessions) texts.push(`${(await play(steps, trio, hand)).trimEnd()}\n`);
    if (writes) writeFileSync(file, withSessions(page, texts));
    else for (const [i, text] of texts.entries()) expect(shapeOf(text)).toEqual(shapeOf(sessions[i]?.shown ?? ''));
  });

  test('has pictures of a terminal', async () => {
    hand.actions['traffic']?.();
    const top = new FullScreen(trio, ['top', '--all', '--every', '1s', '--actors', '12']);
    await until(
      'all nodes are there',
      () => /^a .*\n.*b .*\n.*c .*\n/m.test(top.screen) && !top.screen.includes('...'),
    );
    top.press('s');
    await until('it is sorted', () => top.screen.includes('sorted by in'));
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    const screen = top.screen;
    top.press('q');
    expect(await top.end()).toBe(0);
    await stopTraffic();
    expect(screen).toContain('udp out');
    expect(screen).toContain('q quit');
    const env = { BLOOM_COOKIE: '', COLUMNS: '100' };
    const healthy = await trio.run(['doctor', 'b@127.0.0.1', '--color'], { env });
    const refused = await trio.run(['doctor', 'b@127.0.0.1', '--color'], {
      env: { ...env, BLOOM_COOKIE: 'a-cookie-of-another-cluster' },
    });
    const doctor = `$ bloomctl doctor b@127.0.0.1\n${healthy.out}\n$ BLOOM_COOKIE=a-cookie-of-another-cluster bloomctl doctor b@127.0.0.1\n${refused.out}exit ${refused.code}`;
    expect(healthy.code).toBe(0);
    expect(refused.code).toBe(77);
    if (!writes) return;
    await paint(stage.browser, screen, 'docs/guide/bloomctl-top.png');
    await paint(stage.browser, doctor, 'docs/guide/bloomctl-doctor.png');
  });
});
