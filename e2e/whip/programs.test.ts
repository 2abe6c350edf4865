// Programs that others wrote, unmodified, beside a page with the code of the guide.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repository } from '../harness/repository.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { GuidePage } from './guide-page.js';

/** A program that ends with its standard input. */
async function aiortc(role: 'publish' | 'watch', url: string, token: string) {
  const child = spawn('/usr/bin/python3', [join(repository, 'e2e', 'whip', 'aiortc_client.py'), role, url, token]);
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const look of waiting) look();
  };
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      wake();
    });
  }
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));

  return {
    /** Resolves with the first line of this form. */
    prints: (form: RegExp): Promise<string> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const line = lines.find((one) => form.test(one));
          if (line === undefined) return;
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
        look();
        void ended.then(() => reject(new Error(`the program ended without ${String(form)}:\n${lines.join('\n')}`)));
      }),
    async end(): Promise<void> {
      child.stdin.end();
      await ended;
    },
  };
}

async function statusOf(stage: Stage, room: string, id: string): Promise<string> {
  const { peers } = await stage.api.room(room);
  return peers.find((peer: { id: string }) => peer.id === id).status;
}

browserSuite('Programs by WHIP and WHEP', { needs: ['aiortc'] }, (stage) => {
  test('aiortc publishes, and a page shows its picture', async () => {
    const room = await stage.room();
    const [ann, eve] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
    const program = await aiortc('publish', `${stage.node.url}/whip`, ann.token);
    await program.prints(/^answered/);
    const page = await GuidePage.open(stage.browser);
    await page.watch(`${stage.node.url}/whep?peer=${ann.id}`, eve.token);
    // Its picture is green.
    await page.sees('green');
    expect((await stage.api.room(room)).peers[0].tracks.map(({ type }: { type: string }) => type)).toEqual([
      'audio',
      'video',
    ]);

    await program.end();
    expect(await statusOf(stage, room, ann.id)).toBe('disconnected');
    await page.close();
  });

  test('aiortc watches what a page publishes', async () => {
    const room = await stage.room();
    const [ann, eve] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
    const program = await aiortc('watch', `${stage.node.url}/whep`, eve.token);
    await program.prints(/^answered/);
    const page = await GuidePage.open(stage.browser);
    await page.publish('red', `${stage.node.url}/whip`, ann.token);
    expect(await program.prints(/^frame/)).toBe('frame 640 360');

    await program.end();
    expect(await statusOf(stage, room, eve.id)).toBe('disconnected');
    await page.close();
  });
});
