/** How the published SDKs write the event. */
const PREFIX = '{"type":"disableTrackEncoding",';
/** More than the encodings of all tracks of one client; a longer text is none of theirs. */
const MAX_TEXTS = 128;
const MAX_LENGTH = 512;

/**
 * Recognises events that change nothing. The published SDKs disable each disabled encoding again after every answer, and
 * double the number each time: tens of thousands of events after 15 answers, nearly all of them the same.
 */
export class RepeatedEvents {
  /** The events that came since the last one of another type. */
  readonly #texts = new Set<string>();

  /** Returns whether the event came already, and nothing since then that it could undo. */
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
