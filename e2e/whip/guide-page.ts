// Pages that use WHIP and WHEP with the guide's code, as a reader would copy it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { repository } from '../harness/processes.js';

function guideCode(): string {
  const guide = readFileSync(join(repository, 'docs', 'guide', 'whip.md'), 'utf8');
  const block = /```js\n([\s\S]*?)```/.exec(guide)?.[1];
  if (block === undefined) throw new Error('docs/guide/whip.md has no block of code for a page');
  return block;
}

/** Test helpers around the guide's code; they run in the page. */
const helpers = String.raw`
  const clock = () => performance.timeOrigin + performance.now();
  function picture(colour) {
    const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 360 });
    const context = canvas.getContext('2d');
    let frame = 0;
    setInterval(() => {
      context.fillStyle = colour;
      context.fillRect(0, 0, 640, 360);
      context.fillStyle = 'white';
      context.fillRect((frame++ * 8) % 640, 340, 20, 20);
    }, 40);
    return canvas.captureStream(25).getVideoTracks()[0];
  }
  function tone(loud) {
    const audio = new AudioContext();
    const oscillator = audio.createOscillator();
    window.gain = audio.createGain();
    window.gain.gain.value = loud ? 0.5 : 0;
    const out = audio.createMediaStreamDestination();
    oscillator.connect(window.gain).connect(out);
    oscillator.start();
    return out.stream.getAudioTracks()[0];
  }
  async function startPublishing(colour, loud, url, token) {
    window.whip = await publish(new MediaStream([picture(colour), tone(loud)]), url, token);
    return window.whip.session.pathname;
  }
  async function publishByRelay(colour, url, token, transport) {
    const asked = await fetch(url, { method: 'OPTIONS', headers: { authorization: 'Bearer ' + token } });
    const links = [...asked.headers.get('link').matchAll(/<([^>]+)>; rel="ice-server"; username="([^"]+)"; credential="([^"]+)"/g)];
    const iceServers = links.map(([, urls, username, credential]) => ({ urls, username, credential })).filter(({ urls }) => urls.endsWith(transport));
    const connection = new RTCPeerConnection({ iceServers, iceTransportPolicy: 'relay' });
    connection.addTransceiver(picture(colour), { direction: 'sendonly' });
    window.whip = await connect(connection, url, token);
  }
  const statistics = async (type) => [...(await (window.whip ?? window.whep).connection.getStats()).values()].filter((one) => one.type === type);
  async function selectedPair() {
    for (;;) {
      const [transport] = await statistics('transport');
      const pairs = await statistics('candidate-pair');
      const pair = pairs.find(({ id, state }) => id === transport.selectedCandidatePairId && state === 'succeeded');
      const [near] = (await statistics('local-candidate')).filter(({ id }) => id === pair?.localCandidateId);
      const [far] = (await statistics('remote-candidate')).filter(({ id }) => id === pair?.remoteCandidateId);
      if (near !== undefined && far !== undefined) {
        const { dtlsState } = transport;
        return { ufrag: near.usernameFragment, nearPort: near.port, farPort: far.port, dtlsState };
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  async function startWatching(url, token) {
    const video = document.body.appendChild(Object.assign(document.createElement('video'), { autoplay: true, muted: true }));
    window.frames = [];
    const note = (now) => {
      const canvas = (window.reader ??= Object.assign(document.createElement('canvas'), { width: 4, height: 4 }));
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.drawImage(video, 0, 0, 4, 4);
      const [r, g, b] = context.getImageData(1, 1, 1, 1).data;
      const colour = r > 120 && g < 100 && b < 100 ? 'red' : b > 120 && r < 100 ? 'blue' : g > 80 && r < 100 ? 'green' : r + ',' + g + ',' + b;
      window.frames.push({ at: performance.timeOrigin + now, colour });
      video.requestVideoFrameCallback(note);
    };
    video.requestVideoFrameCallback(note);
    window.whep = await watch(video, url, token);
    return window.whep.session.pathname;
  }
`;

export interface SeenFrame {
  /** Milliseconds since the epoch. */
  at: number;
  colour: string;
}

interface Publishing {
  url: string;
  token: string;
  loud?: boolean;
}

export class GuidePage {
  readonly page: Page;

  private constructor(page: Page) {
    this.page = page;
  }

  static async open(browser: Browser): Promise<GuidePage> {
    const page = await browser.newPage();
    await page.addScriptTag({ content: `${guideCode()}\n${helpers}` });
    return new GuidePage(page);
  }

  /** Returns the path of the session. */
  publish(colour: string, { url, token, loud = false }: Publishing): Promise<string> {
    return this.page.evaluate(
      `startPublishing(${JSON.stringify(colour)}, ${loud}, ${JSON.stringify(url)}, ${JSON.stringify(token)})`,
    );
  }

  /** Publishes by the relay that `OPTIONS` names, over this transport and on no other way. */
  async publishByRelay(colour: string, { url, token }: Publishing, transport: 'udp' | 'tcp'): Promise<void> {
    await this.page.evaluate(`publishByRelay(${[colour, url, token, transport].map((each) => JSON.stringify(each))})`);
  }

  watch(url: string, token: string): Promise<string> {
    return this.page.evaluate(`startWatching(${JSON.stringify(url)}, ${JSON.stringify(token)})`);
  }

  /** Returns the path of the media: ICE user fragments and ports of both sides. */
  selectedPair(): Promise<{ ufrag: string; nearPort: number; farPort: number; dtlsState: string }> {
    return this.page.evaluate('selectedPair()');
  }

  /** Restarts ICE; resolves with the time of the request. */
  restart(): Promise<number> {
    return this.page.evaluate('(async () => { const at = clock(); await window.whip.restart(); return at; })()');
  }

  async setLoud(loud: boolean): Promise<void> {
    await this.page.evaluate(`window.gain.gain.value = ${loud ? 0.5 : 0}`);
  }

  /** Resolves with the first frame of this colour from frame `from` on. */
  async sees(colour: string, from = 0): Promise<SeenFrame> {
    const frame = await this.page.waitForFunction(
      `window.frames.slice(${from}).find((frame) => frame.colour === ${JSON.stringify(colour)})`,
      undefined,
      { timeout: 20_000 },
    );
    return (await frame.jsonValue()) as SeenFrame;
  }

  frames(): Promise<SeenFrame[]> {
    return this.page.evaluate('window.frames');
  }

  /** Returns the time of the POST, in ms since the epoch. */
  posted(): Promise<number> {
    return this.page.evaluate(
      `performance.timeOrigin + performance.getEntriesByType('resource').find(({ name }) => /wh[ie]p/.test(name)).startTime`,
    );
  }

  async close(): Promise<void> {
    await this.page.close();
  }
}
