export type VoiceStatus = 'speech' | 'silence';

export interface VoiceActivityOptions {
  /** Levels up to this (in -dBov: 0 loudest, 127 silent) count as voice. */
  speechLevel?: number;
  /** Speech ends only when levels stay above this: the band between the two keeps whatever is. */
  silenceLevel?: number;
  /** Voice collected before speech begins; a cough or a key stroke is shorter. */
  attackMs?: number;
  /** Quiet time before speech ends; pauses between words are shorter. */
  releaseMs?: number;
}

/**
 * Speech or silence from the audio levels of RFC 6464. A pure machine with hysteresis in level and in time: voice fills a
 * reservoir and quiet empties it, speech begins when it is full and ends after `releaseMs` without voice.
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
   * One packet's level byte (`RtpView.audioLevel`: voice flag in bit 7, which not every sender computes, so only the level
   * decides). True when the status has changed.
   */
  level(levelByte: number, nowMs: number): boolean {
    const level = levelByte & 0x7f;
    // One packet stands for the time since the last, but a gap in the stream is no evidence.
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

  /** To be called now and then: a muted or stopped stream sends no packets but falls silent too. True on a change. */
  tick(nowMs: number): boolean {
    if (this.#status === 'silence' || nowMs - this.#lastVoiceAtMs < this.#releaseMs) return false;
    this.#status = 'silence';
    this.#voiceMs = 0;
    return true;
  }
}
