import type { MediaPathName, MediaProblem, MediaReport, MediaStateName } from '../media-state.js';

/** Silence after which a connected client counts as interrupted. Browsers check their path every 2 to 6 s. */
const SILENT_MS = 8_000;
const CONNECTING_MS = 10_000;
const INTERRUPTED_MS = 20_000;
/** Tracks cannot send before the path is up. */
const SETTLED_MS = 10_000;

/** What the transport knows about its client. */
export interface MediaSigns {
  /** Authentic connectivity checks so far. */
  checks: number;
  /** Packets of DTLS and media so far. */
  packets: number;
  dtls: 'new' | 'connecting' | 'connected' | 'closed' | 'failed';
  /** The path that media takes, if there is one. */
  path: MediaPathName | undefined;
  /** True if a published track that should be sending has sent nothing for a while. */
  lacksMedia: boolean;
}

/** Derives the state of one client's media from what its transport sees. Sans-IO. */
export class MediaWatch {
  #state: MediaStateName = 'idle';
  #problem: MediaProblem | undefined;
  #path: MediaPathName | undefined;
  /** Time of the last answer until a path results from it; afterwards the time when the path was lost. */
  #sinceMs = 0;
  #stateSinceMs = 0;
  #received = 0;
  #receivedAtMs = -Infinity;

  /** The state without its times. */
  get report(): MediaReport {
    return {
      state: this.#state,
      ...(this.#state === 'connected' && this.#path !== undefined ? { path: this.#path } : {}),
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    };
  }

  /** Records an answer. `wanted`: there is something to send or receive. */
  negotiated(wanted: boolean, nowMs: number): MediaReport | undefined {
    if (this.#state !== 'idle' || !wanted) return undefined;
    this.#sinceMs = nowMs;
    return this.#change('connecting', undefined, nowMs);
  }

  /** Compares the signs with those of the previous call. Returns a report when the state or the problem has changed. */
  look(signs: MediaSigns, nowMs: number): MediaReport | undefined {
    const received = signs.checks + signs.packets;
    if (received > this.#received) this.#receivedAtMs = nowMs;
    this.#received = received;
    this.#path = signs.path;
    const [state, problem] = this.#next(signs, nowMs);
    if (state === this.#state && problem === this.#problem) return undefined;

    return this.#change(state, problem, nowMs);
  }

  #next(signs: MediaSigns, nowMs: number): [MediaStateName, MediaProblem?] {
    const { dtls, path, lacksMedia } = signs;
    // The client has closed its connection cleanly.
    if (this.#state === 'idle' || dtls === 'closed') return ['idle'];
    const inState = nowMs - this.#stateSinceMs;
    if (dtls === 'connected' && path !== undefined && nowMs - this.#receivedAtMs < SILENT_MS) {
      const settled = this.#state === 'connected' && inState >= SETTLED_MS;
      return lacksMedia && settled ? ['connected', 'NO_MEDIA'] : ['connected'];
    }
    switch (this.#state) {
      case 'connecting':
        if (dtls !== 'failed' && inState < CONNECTING_MS) return ['connecting'];
        return ['failed', problemOf(signs)];
      case 'connected':
        return ['interrupted'];
      case 'interrupted':
        return inState < INTERRUPTED_MS ? ['interrupted'] : ['failed', problemOf(signs)];
      case 'failed':
        return ['failed', problemOf(signs)];
    }
  }

  #change(state: MediaStateName, problem: MediaProblem | undefined, nowMs: number): MediaReport {
    const connects = state === 'connected' && this.#state !== 'connected';
    if (this.#state === 'connected' && state === 'interrupted') this.#sinceMs = nowMs;
    if (state !== this.#state) this.#stateSinceMs = nowMs;
    this.#state = state;
    this.#problem = problem;

    return connects ? { ...this.report, ms: Math.round(nowMs - this.#sinceMs) } : this.report;
  }
}

/**
 * Why no packets pass. A client starts DTLS once one of its checks was answered, so no DTLS means that no answer
 * arrives.
 */
function problemOf({ checks, dtls }: MediaSigns): MediaProblem {
  if (dtls === 'connected') return 'NO_CHECKS';
  if (checks === 0) return 'NO_CHECKS';
  return dtls === 'new' ? 'ONE_WAY' : 'DTLS_FAILED';
}
