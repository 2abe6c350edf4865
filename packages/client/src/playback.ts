/** The page's sounds, including those that the browser holds back until the person touches the page. */
export class Playback {
  readonly #playing = new Set<HTMLMediaElement>();
  readonly #blocked = new Set<HTMLMediaElement>();
  readonly #report: (play: () => void) => void;

  /** `report` is called for each blocked sound, with a function that starts all of them. */
  constructor(report: (play: () => void) => void) {
    this.#report = report;
  }

  start(element: HTMLMediaElement): () => void {
    this.#playing.add(element);
    this.#play(element);
    return () => {
      this.#playing.delete(element);
      this.#blocked.delete(element);
    };
  }

  #play(element: HTMLMediaElement): void {
    this.#blocked.delete(element);
    element.play().catch((error: unknown) => {
      // Playback of an element being removed is interrupted; only a refusal by the browser matters.
      if (!this.#playing.has(element) || (error as Error).name !== 'NotAllowedError') return;
      this.#blocked.add(element);
      this.#report(() => {
        for (const one of this.#blocked) this.#play(one);
      });
    });
  }
}
