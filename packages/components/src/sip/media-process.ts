import { type ChildProcess, fork } from 'node:child_process';
import type { CallMedia, MediaAddresses, NegotiatedAudio, RtpStats } from '@bloom/sip';
import type { FromPhone, ToPhone } from './engine/phone-protocol.js';

export interface MediaProcessOptions {
  /** The built entry of the process. */
  entry: URL;
  /** A process that says nothing for so long is stuck, and killed. */
  hangMs: number;
  /** One Opus packet of the phone; `timestamp` is 48 kHz, from zero. */
  onFrame(frame: { timestamp: number; data: Uint8Array }): void;
  /** It is gone without having been asked to end. Called once at most. */
  onCrash(reason: string): void;
}

/** Looks at the process in one period of `hangMs`. */
const LOOKS = 5;
const CLOSE_MS = 1000;
const ERROR_TEXT_LIMIT = 2000;
/** The heap holds buffers of a second. One thread fewer for each of V8's own, and no collector of its own. */
const NODE_FLAGS = ['--max-old-space-size=64', '--v8-pool-size=0'];
const NOTHING_YET: RtpStats = { played: 0, missing: 0, late: 0, dropped: 0, received: 0, refused: 0, sent: 0 };

/** The forked process that deals with the sound of one call, and the only place that knows that it is a process. */
export class MediaProcess implements CallMedia {
  readonly #options: MediaProcessOptions;
  readonly #child: ChildProcess;
  readonly #watchdog: NodeJS.Timeout;
  readonly #gone: Promise<void>;
  #opened: { resolve: (media: MediaProcess) => void; reject: (error: Error) => void } | undefined;
  #onDigit: (digit: string) => void = () => {};
  #port = 0;
  #stats = NOTHING_YET;
  #quiet: { ms: number; at: number } | undefined;
  /** Looks in a row that found no sign of life. */
  #unheard = 0;
  #errorText = '';
  #ending = false;

  constructor(options: MediaProcessOptions) {
    this.#options = options;
    this.#child = fork(options.entry, {
      serialization: 'advanced',
      // It reads what strangers send: nothing of the server's environment is its business.
      env: {},
      execArgv: NODE_FLAGS,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errorText = (this.#errorText + text).slice(-ERROR_TEXT_LIMIT);
    });
    this.#child.on('message', (message) => this.#receive(message as FromPhone));
    this.#gone = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#crashed(error.message);
        resolve();
      });
      this.#child.once('close', (code, signal) => {
        clearInterval(this.#watchdog);
        const words = this.#errorText.trim();
        this.#crashed(`it ended with ${signal ?? `code ${code}`}${words === '' ? '' : `: ${words}`}`);
        resolve();
      });
    });
    // Looks are counted, not time: when this process was the one that stood still, a look finds what came meanwhile.
    this.#watchdog = setInterval(() => {
      this.#unheard += 1;
      if (this.#unheard > LOOKS) this.#hung();
    }, options.hangMs / LOOKS);
    this.#watchdog.unref();
  }

  /** Opens its socket; rejects when there is none, and when the process ends. */
  open({ address, bindAddress, onDigit }: MediaAddresses): Promise<MediaProcess> {
    this.#onDigit = onDigit;
    return new Promise((resolve, reject) => {
      if (this.#ending) {
        reject(new Error('the process of the call is gone'));
        return;
      }
      this.#opened = { resolve, reject };
      void this.#send({ type: 'open', address, bindAddress });
    });
  }

  get processId(): number | undefined {
    return this.#child.pid;
  }

  get port(): number {
    return this.#port;
  }

  stats(): RtpStats {
    return this.#stats;
  }

  quietFor(): number | undefined {
    return this.#quiet === undefined ? undefined : this.#quiet.ms + performance.now() - this.#quiet.at;
  }

  configure(audio: NegotiatedAudio): void {
    void this.#send({ type: 'agreed', audio });
  }

  setTracks(ids: string[]): void {
    void this.#send({ type: 'tracks', ids });
  }

  /** Resolves when the packet has left: whoever sends much waits for it. Never rejects. */
  push(track: string, timestamp: number, data: Uint8Array): Promise<void> {
    return this.#send({ type: 'frame', track, timestamp, data });
  }

  gap(track: string): void {
    void this.#send({ type: 'gap', track });
  }

  async close(): Promise<void> {
    this.#ending = true;
    clearInterval(this.#watchdog);
    void this.#send({ type: 'close' });
    const overdue = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_MS);
    await this.#gone;
    clearTimeout(overdue);
  }

  #send(message: ToPhone): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#child.connected) resolve();
      else this.#child.send(message, () => resolve());
    });
  }

  #receive(message: FromPhone): void {
    this.#unheard = 0;
    if (this.#ending) return;
    if (message.type === 'frame') this.#options.onFrame(message);
    else if (message.type === 'alive') {
      this.#stats = message.stats;
      this.#quiet = message.quietMs === undefined ? undefined : { ms: message.quietMs, at: performance.now() };
    } else if (message.type === 'digit') this.#onDigit(message.digit);
    else if (message.type === 'opened') {
      this.#port = message.port;
      this.#opened?.resolve(this);
    } else this.#opened?.reject(new Error(`there is no socket for the call: ${message.message}`));
  }

  #hung(): void {
    this.#crashed(`it has said nothing for ${this.#options.hangMs} ms`);
    this.#child.kill('SIGKILL');
  }

  #crashed(reason: string): void {
    this.#opened?.reject(new Error(`the process of the call is gone: ${reason}`));
    if (this.#ending) return;
    this.#ending = true;
    this.#options.onCrash(reason);
  }
}
