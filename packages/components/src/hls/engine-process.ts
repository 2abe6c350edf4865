import { type ChildProcess, fork } from 'node:child_process';
import { Watchdog } from '../watchdog.js';
import type { FromEngine, ToEngine } from './engine/engine-protocol.js';

export interface EngineProcessOptions {
  /** The built entry of the compositor. */
  entry: URL;
  /** A process that says nothing for so long is stuck, and killed. */
  hangMs?: number;
  onMessage(message: FromEngine): void;
  /** It is gone without having been asked to finish. Called once at most. */
  onCrash(reason: string): void;
}

const DEFAULT_HANG_MS = 10_000;
const FINISH_MS = 3_000;
const ERROR_TEXT_LIMIT = 2_000;

/** The forked compositor of one component, and the only place that knows that it is a process. */
export class EngineProcess {
  private readonly child: ChildProcess;
  private readonly watchdog: Watchdog;
  private readonly gone: Promise<void>;
  private errorText = '';
  private ending = false;

  constructor(private readonly options: EngineProcessOptions) {
    const { entry, hangMs = DEFAULT_HANG_MS, onMessage } = options;
    this.child = fork(entry, {
      serialization: 'advanced',
      // It reads what strangers send: nothing of the server's environment is its business.
      env: {},
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errorText = (this.errorText + text).slice(-ERROR_TEXT_LIMIT);
    });
    this.child.on('message', (message) => {
      this.watchdog.heard();
      onMessage(message as FromEngine);
    });
    this.gone = new Promise((resolve) => {
      this.child.once('error', (error) => this.crashed(error.message));
      this.child.once('close', (code, signal) => {
        this.watchdog.stop();
        this.crashed(
          `it ended with ${signal ?? `code ${code}`}${this.errorText === '' ? '' : `: ${this.errorText.trim()}`}`,
        );
        resolve();
      });
      this.child.once('error', () => resolve());
    });
    this.watchdog = new Watchdog(hangMs, () => this.hung(hangMs));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Resolves when the message has left: whoever sends much waits for it. Never rejects. */
  send(message: ToEngine): Promise<void> {
    return new Promise((resolve) => {
      if (!this.child.connected) resolve();
      else this.child.send(message, () => resolve());
    });
  }

  /** Lets it hand over what there is; resolves when it is gone. Idempotent. */
  async finish(): Promise<void> {
    if (!this.ending) {
      this.ending = true;
      void this.send({ type: 'finish' });
    }
    const overdue = setTimeout(() => this.child.kill('SIGKILL'), FINISH_MS);
    await this.gone;
    clearTimeout(overdue);
  }

  private hung(hangMs: number): void {
    this.crashed(`it has said nothing for ${hangMs} ms`);
    this.child.kill('SIGKILL');
  }

  private crashed(reason: string): void {
    if (this.ending) return;
    this.ending = true;
    this.options.onCrash(reason);
  }
}
