// A participant with @bloom/client, in any browser.
import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { NewPeer } from '../harness/api.js';
import type { SeenTrack, Standstill } from '../page/client.js';

export class Person {
  constructor(
    readonly page: Page,
    readonly id: string,
  ) {}

  /** Joins from an empty page of the application. */
  static async join(page: Page, { id, token }: NewPeer, { url, name }: { url: string; name: string }): Promise<Person> {
    const options = { url, token, metadata: { name } };
    expect(await page.evaluate((all) => window.application.connect(all), options)).toBeUndefined();
    return new Person(page, id);
  }

  sees(check: (tracks: SeenTrack[]) => boolean, timeoutMs = 10_000): Promise<SeenTrack[]> {
    return this.#until(() => this.page.evaluate(() => window.application.tracks()), check, timeoutMs);
  }

  /** Waits for a sound of this pitch. */
  async hears(hz: number, timeoutMs = 10_000): Promise<void> {
    await this.#until(
      () => this.page.evaluate(() => window.application.sounds()),
      (sounds) => sounds.some((one) => one.level > 60 && Math.abs(one.hz - hz) < 30),
      timeoutMs,
    );
  }

  /** Returns how long the other's picture stood still since `resetPauses`, in ms, once it moves again. */
  async standstill(timeoutMs = 30_000): Promise<number> {
    const { longestMs } = await this.#until(
      () => this.page.evaluate(() => window.application.standstill()),
      ({ longestMs: longest, sinceLastMs }: Standstill) => longest > 400 && sinceLastMs < 200,
      timeoutMs,
    );
    return longestMs;
  }

  /** Returns the longest time that the other's picture stood still since `resetPauses`, in ms. */
  async longestPause(): Promise<number> {
    const { longestMs, sinceLastMs } = await this.page.evaluate(() => window.application.standstill());
    return Math.max(longestMs, sinceLastMs);
  }

  async log(line: string, timeoutMs = 10_000): Promise<void> {
    await this.#until(
      () => this.page.evaluate((wanted) => window.application.log.includes(wanted), line),
      (logged) => logged,
      timeoutMs,
    );
  }

  async #until<T>(read: () => Promise<T>, check: (value: T) => boolean, timeoutMs: number): Promise<T> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const value = await read();
      if (check(value)) return value;
      if (Date.now() > deadline) {
        const { log, client } = await this.page.evaluate(async () => ({
          log: window.application.log,
          client: { state: window.application.client.state, ...(await window.application.client.stats()) },
        }));
        throw new Error(`not seen within ${timeoutMs} ms: ${JSON.stringify({ value, log, client })}`);
      }
      await this.page.waitForTimeout(50);
    }
  }
}

export const playing =
  (colour: string) =>
  (tracks: SeenTrack[]): boolean =>
    tracks.some((track) => track.colour === colour && track.frames > 3);
