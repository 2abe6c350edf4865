// Somebody with LiveKit's native SDK for Node, which has the Rust core of its other native SDKs.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '@bloom/time/testing';
import { tokenFor } from './participant.js';

const PROGRAM = fileURLToPath(new URL('./native-person.mjs', import.meta.url));
const RECEIVED_MS = 15_000;

/**
 * What the person has told: the pitch of a sound, the colour of a picture and the longest pause before it, how often it
 * was connected again.
 */
interface Told {
  hz?: number;
  rgb?: [number, number, number];
  maxGapMs?: number;
  reconnected?: number;
}

/** Publishes blue pictures and a tone of 880 Hz. */
export class NativePerson {
  readonly #process: ChildProcess;
  #told: Told = {};

  private constructor(process: ChildProcess) {
    this.#process = process;
  }

  /** Starts a person who joins a room. */
  static async start(url: string, room: string, identity: string): Promise<NativePerson> {
    const token = await tokenFor(room, identity);
    const child = spawn(process.execPath, [PROGRAM, url, token], { stdio: ['ignore', 'pipe', 'inherit'] });
    const person = new NativePerson(child);
    // The SDK logs there, too.
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (/^\{"(hz|rgb|reconnected)"/.test(line)) Object.assign(person.#told, JSON.parse(line));
    });

    return person;
  }

  /** Waits until the person has received a tone and a picture since it was last asked. Returns them. */
  async received(): Promise<Required<Pick<Told, 'hz' | 'rgb' | 'maxGapMs'>>> {
    await until(() => this.#told.hz !== undefined && this.#told.rgb !== undefined, RECEIVED_MS);
    const { hz = 0, rgb = [0, 0, 0], maxGapMs = 0 } = this.#told;
    delete this.#told.hz;
    delete this.#told.rgb;

    return { hz, rgb, maxGapMs };
  }

  /** Waits until the person is connected again. */
  async reconnected(): Promise<void> {
    await until(() => this.reconnects > 0, RECEIVED_MS);
  }

  /** How often the person was connected again. */
  get reconnects(): number {
    return this.#told.reconnected ?? 0;
  }

  close(): void {
    this.#process.kill('SIGKILL');
  }
}
