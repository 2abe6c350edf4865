/** The start of the event as the published SDKs write it. */
const PREFIX = '{"type":"disableTrackEncoding",';
/** Exceeds the number of encodings of all tracks of a client, and the length of their events. */
const MAX_TEXTS = 128;
const MAX_LENGTH = 512;

/**
 * Recognises events that change nothing. After every answer the published SDKs disable each disabled encoding again,
 * twice as often each time: tens of thousands of events after 15 answers, nearly all of them identical.
 */
export class RepeatedEvents {
  /** Events received since the last one of another type. */
  readonly #texts = new Set<string>();

  /** Returns true when the event was already received and nothing received since could have undone it. */
  repeats(text: string): boolean {
    if (!text.startsWith(PREFIX)) {
      this.#texts.clear();
      return false;
    }
    if (this.#texts.has(text)) return true;
    if (text.length <= MAX_LENGTH && this.#texts.size < MAX_TEXTS) this.#texts.add(text);
    return false;
  }
}
