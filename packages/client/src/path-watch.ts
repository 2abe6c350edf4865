import { IDLE, type MediaState } from './media-state.js';

export interface PathWatchHooks {
  changed(state: MediaState): void;
  /** Looks for a new path. */
  restart(): void;
  /** Adds its path to `connected` and its problem to `failed`. */
  explain(state: 'connected' | 'failed'): Promise<MediaState>;
}

/** Time allowed for ICE to recover from `disconnected` by itself before it is restarted. */
const DISCONNECTED_MS = 2_000;
const LONGEST_PAUSE_MS = 30_000;
const CONNECTING_MS = 10_000;
const INTERRUPTED_MS = 20_000;

/** Derives the state of the media from the WebRTC connection, and restarts ICE with growing pauses while it is down. */
export class PathWatch {
  readonly #hooks: PathWatchHooks;
  #state: MediaState['state'] = 'idle';
  #pauseMs = DISCONNECTED_MS;
  #overdue: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(hooks: PathWatchHooks) {
    this.#hooks = hooks;
  }

  /** Records that the client has applied an answer. `wanted`: there is something to send or receive. */
  answered(wanted: boolean): void {
    if (wanted && this.#state === 'idle') this.#enter('connecting');
  }

  connectionChanged(state: RTCPeerConnectionState): void {
    if (state === 'connected') this.#enter('connected');
    else if (state === 'disconnected' || state === 'failed') {
      if (this.#state === 'connected') this.#enter('interrupted');
      // The browser has given up, so it will not recover by itself. Further restarts keep to their schedule.
      else if (state === 'failed' && !this.#hasRestarted) this.#restart();
    }
  }

  /** True from the first restart of an interruption to its end. */
  get #hasRestarted(): boolean {
    return this.#pauseMs > DISCONNECTED_MS;
  }

  close(): void {
    this.#state = 'idle';
    clearTimeout(this.#overdue);
    clearTimeout(this.#retry);
  }

  #enter(state: MediaState['state']): void {
    if (state === this.#state) return;
    this.#state = state;
    clearTimeout(this.#overdue);
    if (state === 'connected') {
      clearTimeout(this.#retry);
      this.#pauseMs = DISCONNECTED_MS;
    }
    if (state === 'interrupted') this.#retry = setTimeout(() => this.#restart(), this.#pauseMs);
    if (state === 'connecting' || state === 'interrupted') {
      const limitMs = state === 'connecting' ? CONNECTING_MS : INTERRUPTED_MS;
      this.#overdue = setTimeout(() => this.#enter('failed'), limitMs);
    }
    if (state !== 'connected' && state !== 'failed') return this.#hooks.changed({ ...IDLE, state });
    if (state === 'failed') this.#restart();
    const explained = this.#hooks.explain(state).catch((): MediaState => ({ ...IDLE, state }));
    void explained.then((one) => {
      if (this.#state === state) this.#hooks.changed(one);
    });
  }

  #restart(): void {
    clearTimeout(this.#retry);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#retry = setTimeout(() => this.#restart(), this.#pauseMs);
    this.#hooks.restart();
  }
}
