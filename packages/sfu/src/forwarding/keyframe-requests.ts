/** Interval between requests while no keyframe arrives, ms. */
const RETRY_MS = 500;
/**
 * Shortest interval between requests, ms: fifty subscribers joining one by one must not make every frame a keyframe.
 */
const MIN_GAP_MS = 250;
/** Unanswered requests before giving up; the next request starts over. */
const MAX_ATTEMPTS = 20;

/**
 * Keyframe requests for one variant, on behalf of all its subscribers. At most one is outstanding; it is repeated until
 * the keyframe arrives. Pure: `true` means "send a PLI now".
 */
export class KeyframeRequests {
  #attempts = 0;
  #wanted = false;
  #lastSentMs = Number.NEGATIVE_INFINITY;
  /** True after the last request was given up, until the next one. */
  gaveUp = false;

  /** True while a requested keyframe has not arrived. */
  get outstanding(): boolean {
    return this.#wanted;
  }

  /** Requests a keyframe for a subscriber. */
  request(nowMs: number): boolean {
    if (this.#wanted) return false;
    this.#wanted = true;
    this.gaveUp = false;
    this.#attempts = 0;
    if (nowMs - this.#lastSentMs < MIN_GAP_MS) return false;
    return this.#send(nowMs);
  }

  /** Called on the tick, for a delayed first request or a repetition. */
  due(nowMs: number): boolean {
    if (!this.#wanted) return false;
    const gap = this.#attempts === 0 ? MIN_GAP_MS : RETRY_MS;
    if (nowMs - this.#lastSentMs < gap) return false;
    if (this.#attempts >= MAX_ATTEMPTS) {
      this.#wanted = false;
      this.gaveUp = true;
      return false;
    }
    return this.#send(nowMs);
  }

  /** Records a keyframe, requested or not. */
  keyframe(): void {
    this.#wanted = false;
    this.gaveUp = false;
  }

  /** Cancels the request: no subscriber is waiting any more, or the variant has ended. */
  cancel(): void {
    this.#wanted = false;
    this.gaveUp = false;
  }

  #send(nowMs: number): true {
    this.#lastSentMs = nowMs;
    this.#attempts++;
    return true;
  }
}
