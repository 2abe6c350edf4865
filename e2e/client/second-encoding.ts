// People who send a second encoding of their track, and viewers who need it.
import type { Page } from 'playwright-core';
import { decodeOnly } from '../harness/decode-only.js';
import type { Stage } from '../harness/stage.js';
import { Person } from './person.js';

/** Codecs of browsers that have neither VP9 nor AV1. */
export const COMMON = ['video/VP8', 'video/H264'];

export const join = async (stage: Stage, room: string, page: Page): Promise<Person> =>
  Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name: 'one' });

/** Joins with a browser that decodes VP8 and H.264 only. */
export async function joinWithout(stage: Stage, room: string): Promise<Person> {
  const page = await stage.page('client');
  await decodeOnly(page, ...COMMON);
  return join(stage, room, page);
}

export const codecs = ({ page }: Person): Promise<(string | null)[]> =>
  page.evaluate(() => window.application.codecs());
export const sent = async ({ page }: Person): Promise<[number, number]> => {
  const [first = 0, second = 0] = await page.evaluate(() => window.application.sent());
  return [first, second];
};

/** Waits until more of an encoding is sent, by default of the second one. */
export async function begins(person: Person, place: 0 | 1 = 1): Promise<void> {
  const before = (await sent(person))[place];
  while ((await sent(person))[place] === before) await person.page.waitForTimeout(20);
}

/** Waits until nothing of the second encoding has been sent for a second. */
export async function stops(person: Person): Promise<void> {
  let [, before] = await sent(person);
  for (;;) {
    await person.page.waitForTimeout(1_000);
    const [, now] = await sent(person);
    if (now === before) return;
    before = now;
  }
}

export const publish = ({ page }: Person, first: 'av1' | 'vp9', simulcast = false): Promise<number> =>
  page.evaluate(
    ([codec, sizes]) =>
      window.application.publish({ colour: 'red', fps: 30 }, { codecs: [codec, 'vp8'], simulcast: sizes }),
    [first, simulcast] as const,
  );
