// Somebody in a room with the unmodified livekit-client, in any browser.
import { AccessToken, RoomServiceClient, type VideoGrant, WebhookReceiver } from 'livekit-server-sdk';
import type { Page } from 'playwright-core';
import type { SeenPublication } from '../page/livekit.js';

const apiKey = 'APIbloom';
const apiSecret = 'a-secret-of-more-than-thirty-two-characters';
/** Settings of a node that serves LiveKit's clients. */
export const livekitNode = { JF_LIVEKIT_KEYS: `${apiKey}: ${apiSecret}` };

/** Reads webhooks of such a node. */
export const webhookReceiver = new WebhookReceiver(apiKey, apiSecret);

const timeoutMs = 15_000;

/** Returns LiveKit's client of a node's server API. */
export function serviceOf(url: string): RoomServiceClient {
  return new RoomServiceClient(url, apiKey, apiSecret);
}

export async function tokenFor(room: string, identity: string, grant: VideoGrant = {}): Promise<string> {
  const token = new AccessToken(apiKey, apiSecret, { identity, name: identity, ttl: 600 });
  token.addGrant({ roomJoin: true, room, ...grant });

  return token.toJwt();
}

interface Joining {
  url: string;
  room: string;
  identity: string;
  grant?: VideoGrant;
  /** `singlePeerConnection: false` makes two connections, as clients of before 2026 do. */
  options?: { singlePeerConnection?: boolean; dynacast?: boolean };
}

export class Participant {
  constructor(
    readonly page: Page,
    readonly identity: string,
  ) {}

  /** Joins from an empty page of the application. */
  static async join(page: Page, { url, room, identity, grant = {}, options = {} }: Joining): Promise<Participant> {
    const token = await tokenFor(room, identity, grant);
    const refused = await page.evaluate(([to, with_, chosen]) => window.livekit.connect(to, with_, chosen), [
      url,
      token,
      options,
    ] as const);
    if (refused !== undefined) throw new Error(`${identity} was refused: ${refused}`);

    return new Participant(page, identity);
  }

  /** Waits until the tracks of the others look as wanted. */
  sees(check: (tracks: SeenPublication[]) => boolean): Promise<SeenPublication[]> {
    return this.until(() => this.page.evaluate(() => window.livekit.tracks()), check);
  }

  /** Waits for pictures of this colour, from this identity. */
  async plays(colour: string, identity?: string): Promise<SeenPublication> {
    const matches = (track: SeenPublication): boolean =>
      track.colour === colour && track.frames > 3 && (identity === undefined || track.identity === identity);
    const tracks = await this.sees((all) => all.some(matches));

    return tracks.find(matches) as SeenPublication;
  }

  /** Waits for a sound of this pitch from this identity. */
  async hears(hz: number, identity: string): Promise<void> {
    await this.until(
      () =>
        this.page.evaluate((whose) => {
          const track = window.livekit.tracks().find(({ identity: each, kind }) => each === whose && kind === 'audio');
          return window.livekit.tone(track?.sid ?? '');
        }, identity),
      (heard) => heard.level > 60 && Math.abs(heard.hz - hz) < 30,
    );
  }

  async logged(line: string): Promise<void> {
    await this.until(
      () => this.page.evaluate(() => [...window.livekit.log]),
      (lines) => lines.some((each) => each.startsWith(line)),
    );
  }

  async until<T>(read: () => Promise<T>, check: (value: T) => boolean): Promise<T> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const value = await read();
      if (check(value)) return value;
      if (Date.now() > deadline) {
        const log = await this.page.evaluate(() => window.livekit.log.slice(-30));
        throw new Error(`${this.identity}: not seen within ${timeoutMs} ms: ${JSON.stringify({ value, log })}`);
      }
      await this.page.waitForTimeout(50);
    }
  }
}
