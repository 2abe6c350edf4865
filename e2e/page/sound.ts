import { audioContext } from './picture.js';

/** Listens to a remote sound. */
export class Listener {
  readonly #analyser = new AnalyserNode(audioContext(), { fftSize: 4096, smoothingTimeConstant: 0 });
  readonly #input: MediaStreamAudioSourceNode;

  constructor(track: MediaStreamTrack) {
    // Chromium feeds a remote sound into Web Audio only while a media element plays it too.
    const element = new Audio();
    element.muted = true;
    element.srcObject = new MediaStream([track]);
    void element.play();
    this.#input = audioContext().createMediaStreamSource(element.srcObject);
    this.#input.connect(this.#analyser);
  }

  /** Returns the loudest frequency and its level (0..255). */
  loudest(): { hz: number; level: number } {
    const levels = new Uint8Array(this.#analyser.frequencyBinCount);
    this.#analyser.getByteFrequencyData(levels);
    let loudest = 0;
    for (const [i, level] of levels.entries()) if (level > (levels[loudest] ?? 0)) loudest = i;
    const hz = (loudest * this.#analyser.context.sampleRate) / this.#analyser.fftSize;
    return { hz, level: levels[loudest] ?? 0 };
  }

  /** An analyser runs until its input is removed, even after the track has ended. */
  close(): void {
    this.#input.disconnect();
  }
}
