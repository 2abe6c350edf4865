import { setTimeout as delay } from 'node:timers/promises';
import { makeSources } from '../hls/stream.js';
import { address } from '../sfu/private-network.js';
import type { BloomServer } from '../sfu/servers/bloom.js';
import { token } from '../sfu/servers/bloom-clients.js';

/** Nothing listens there, so the recording stays on the disk. */
const STORE = {
  accessKeyId: 'id',
  secretAccessKey: 'key',
  region: 'eu',
  bucket: 'calls',
  endpoint: 'http://127.0.0.1:1',
};
const WAIT_MS = 60_000;

interface Listed {
  part: string;
  state: string;
  mix?: { state: string; progress?: number; reason?: string };
}

/** A recording on the node under test, and its mix. */
export class BenchRecording {
  readonly #at: string;
  readonly #roomId: string;
  #part = '';

  private constructor(port: number, roomId: string) {
    this.#at = `http://${address}:${port}`;
    this.#roomId = roomId;
  }

  /** Records people, each with a camera of 1280x720 and a microphone, played from files. */
  static async make(
    { port, resources }: BloomServer,
    { people, seconds }: { people: number; seconds: number },
  ): Promise<BenchRecording> {
    makeSources(resources, seconds);
    const made = new BenchRecording(port, 'recorded');
    await made.#call('POST', '/room', { roomId: 'recorded', videoCodec: 'h264' });
    const add = (type: string, options: unknown): Promise<unknown> =>
      made.#call('POST', '/room/recorded/component', { type, options });
    await add('recording', { credentials: STORE });
    for (let i = 0; i < people; i += 1) {
      await add('file', { filePath: '720p.h264', framerate: 30 });
      await add('file', { filePath: 'tone.ogg' });
    }
    await delay(seconds * 1_000);
    await made.#call('DELETE', '/room/recorded');
    made.#part = (await made.#until(({ state }) => state !== 'recording')).part;

    return made;
  }

  /** Resolves when the mixer is at work. */
  async startMix(): Promise<void> {
    await this.#call('POST', `/raw_recording/${this.#roomId}/${this.#part}/mix`, {});
    await this.#until(({ mix }) => mix?.state === 'mixing' && (mix.progress ?? 0) > 0);
  }

  /** Mixes again and again from here on, because a fast machine is done before the measured window is over. */
  keepMixing(): { end: () => Promise<void> } {
    let ended = false;
    const mixing = (async (): Promise<void> => {
      while (!ended) {
        const { mix } = await this.#listed();
        if (mix?.state === 'failed') throw new Error(`the mix failed: ${mix.reason}`);
        if (mix?.state !== 'mixing') {
          await this.#deleteMix();
          await this.startMix();
        }
        await delay(100);
      }
      await this.#deleteMix();
    })();
    mixing.catch(() => {});

    return {
      end: async (): Promise<void> => {
        ended = true;
        await mixing;
      },
    };
  }

  async #deleteMix(): Promise<void> {
    await this.#call('DELETE', `/raw_recording/${this.#roomId}/${this.#part}/mix`);
  }

  async #until(holds: (listed: Listed) => boolean): Promise<Listed> {
    const deadline = performance.now() + WAIT_MS;
    for (;;) {
      const listed = await this.#listed();
      if (listed.mix?.state === 'failed') throw new Error(`the mix failed: ${listed.mix.reason}`);
      if (holds(listed)) return listed;
      if (performance.now() > deadline) throw new Error(`the recording is ${JSON.stringify(listed)}`);
      await delay(100);
    }
  }

  async #listed(): Promise<Listed> {
    const { data } = (await this.#call('GET', `/raw_recording?room=${this.#roomId}`)) as { data: Listed[] };
    const [first] = data;
    if (first === undefined) throw new Error('the recording is not listed');

    return first;
  }

  async #call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.#at}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);

    return text === '' ? undefined : JSON.parse(text);
  }
}
