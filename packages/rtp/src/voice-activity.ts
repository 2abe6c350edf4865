export type VoiceStatus = 'speech' | 'silence';

export interface VoiceActivityOptions {
  /** Levels up to this (in -dBov: 0 loudest, 127 silent) count as voice. */
  speechLevel?: number;
  /** Speech ends only if levels stay above this; between the two thresholds the status does not change. */
  silenceLevel?: number;
  /** Voice needed before speech starts, ms; a cough or a keystroke is shorter. */
  attackMs?: number;
  /** Silence needed before speech ends, ms; pauses between words are shorter. */
  releaseMs?: number;
}

/**
 * Detects speech from the audio levels of RFC 6464. A pure state machine with hysteresis in level and in time: voice
 * fills a reservoir and silence empties it; speech starts when it is full and ends after `releaseMs` without voice.
 */
export class VoiceActivity {
  readonly #speechLevel: number;
  readonly #silenceLevel: number;
  readonly #attackMs: number;
  readonly #releaseMs: number;
  #status: VoiceStatus = 'silence';
  #voiceMs = 0;
  #lastVoiceAtMs = 0;
  #lastAtMs = -1;

  constructor(options: VoiceActivityOptions = {}) {
    this.#speechLevel = options.speechLevel ?? 50;
    this.#silenceLevel = options.silenceLevel ?? 60;
    this.#attackMs = options.attackMs ?? 100;
    this.#releaseMs = options.releaseMs ?? 600;
  }

  get status(): VoiceStatus {
    return this.#status;
  }

  /**
   * Takes one packet's level byte (`RtpView.audioLevel`); returns true if the status has changed. Only the level
   * counts, because not every sender computes the voice flag in bit 7.
   */
  level(levelByte: number, nowMs: number): boolean {
    const level = levelByte & 0x7f;
    // One packet stands for the time since the previous one, but a gap in the stream is no evidence.
    const spanMs = this.#lastAtMs < 0 ? 20 : Math.min(60, Math.max(0, nowMs - this.#lastAtMs));
    this.#lastAtMs = nowMs;
    if (this.#status === 'speech') {
      if (level <= this.#silenceLevel) this.#lastVoiceAtMs = nowMs;
      return this.tick(nowMs);
    }
    this.#voiceMs = level <= this.#speechLevel ? this.#voiceMs + spanMs : Math.max(0, this.#voiceMs - spanMs);
    if (this.#voiceMs < this.#attackMs) return false;
    this.#status = 'speech';
    this.#lastVoiceAtMs = nowMs;
    return true;
  }

  /** Ends the speech of a stream that has stopped sending packets. Call it regularly; returns true on a change. */
  tick(nowMs: number): boolean {
    if (this.#status === 'silence' || nowMs - this.#lastVoiceAtMs < this.#releaseMs) return false;
    this.#status = 'silence';
    this.#voiceMs = 0;
    return true;
  }
}
