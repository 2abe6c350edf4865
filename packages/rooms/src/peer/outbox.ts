/** Maximum number of characters waiting for one client; equals the byte limit of its websocket. */
const MAX_WAITING = 8 * 1024 * 1024;
/** Delay before rejected events are sent again. */
export const RETRY_MS = 100;
/** Maximum number of consecutive attempts without any event accepted. */
const MAX_ATTEMPTS = 50;

/** Returns false for an event that was definitely not accepted. */
type Take = (text: string) => boolean;

/**
 * Holds events for one client that the link to its websocket's node has rejected, oldest first. All clients of that
 * node share the link, and a participant that makes its room send to all of them at once may fill it for a moment.
 */
export class Outbox {
  readonly #waiting: string[] = [];
  #size = 0;
  #attempts = 0;

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Sends the event after all waiting ones. Returns false when too many are waiting. */
  send(text: string, take: Take): boolean {
    if (this.isEmpty && take(text)) return true;
    if (!this.isEmpty && this.#size + text.length > MAX_WAITING) return false;
    this.#waiting.push(text);
    this.#size += text.length;

    return true;
  }

  /** Sends the waiting events. Returns false when none has been accepted for too long. */
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
