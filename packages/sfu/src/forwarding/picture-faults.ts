import { EntryPoint } from '@bloom/rtp';

/** Keyframes in a row without parameter sets that count as a fault; a few may rely on earlier sets. */
const BARE_KEYFRAMES = 3;

/** Reports once what makes the pictures of a track unplayable for its viewers. */
export class PictureFaults {
  readonly #report: (fault: 'bFrames' | 'bareKeyframes') => void;
  #bFramesReported = false;
  /** Consecutive key pictures without parameter sets. */
  #bareKeyframes = 0;

  constructor(report: (fault: 'bFrames' | 'bareKeyframes') => void) {
    this.#report = report;
  }

  hasBFrames(): void {
    if (this.#bFramesReported) return;
    this.#bFramesReported = true;
    this.#report('bFrames');
  }

  /** Only decoders that have seen the parameter sets earlier can decode key pictures without them. */
  keyframe(entryPoint: EntryPoint): void {
    if (this.#bareKeyframes === BARE_KEYFRAMES) return;
    this.#bareKeyframes = entryPoint === EntryPoint.ifFirst ? this.#bareKeyframes + 1 : 0;
    if (this.#bareKeyframes === BARE_KEYFRAMES) this.#report('bareKeyframes');
  }
}
