/** Characters that may wait for one client, as many as bytes for its websocket. */
const MAX_WAITING = 8 * 1024 * 1024;
/** Time until events that were not taken are tried again. */
export const RETRY_MS = 100;
/** Attempts in a row of which none was taken. */
const MAX_ATTEMPTS = 50;

/** Returns false for an event that was certainly not accepted. */
type Take = (text: string) => boolean;

/**
 * Events for one client that the link to the node of its websocket did not take, oldest first. All clients of that node share
 * the link: what one participant makes its room send to all of them at once may fill it for a moment.
 */
export class Outbox {
  readonly #waiting: string[] = [];
  #size = 0;
  #attempts = 0;

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Sends the event, after those before it. Returns false when too much waits already. */
  send(text: string, take: Take): boolean {
    if (this.isEmpty && take(text)) return true;
    if (!this.isEmpty && this.#size + text.length > MAX_WAITING) return false;
    this.#waiting.push(text);
    this.#size += text.length;

    return true;
  }

  /** Sends what waits. Returns false when nothing has been taken for too long. */
  retry(take: Take): boolean {
    let sent = 0;
    for (const text of this.#waiting) {
      if (!take(text)) break;
      this.#size -= text.length;
      sent += 1;
    }
    this.#waiting.splice(0, sent);
    this.#attempts = sent > 0 ? 0 : this.#attempts + 1;

    return this.#attempts < MAX_ATTEMPTS;
  }
}
