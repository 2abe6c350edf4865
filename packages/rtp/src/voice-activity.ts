export type VoiceStatus = 'speech' | 'silence';

/** Levels up to this (in -dBov: 0 loudest, 127 silent) count as voice. */
const SPEECH_LEVEL = 50;
/** Speech ends only if levels stay above this; between the two thresholds the status does not change. */
const SILENCE_LEVEL = 60;
/** Voice needed before speech starts; a cough or a keystroke is shorter. */
const ATTACK_MS = 100;
/** Silence needed before speech ends; pauses between words are shorter. */
const RELEASE_MS = 600;

/**
 * Detects speech from the audio levels of RFC 6464. A pure state machine with hysteresis in level and in time: voice
 * fills a reservoir and silence empties it; speech starts when it is full and ends after `RELEASE_MS` without voice.
 */
export class VoiceActivity {
  #status: VoiceStatus = 'silence';
  #voiceMs = 0;
  #lastVoiceAtMs = 0;
  #lastAtMs = -1;

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
      if (level <= SILENCE_LEVEL) this.#lastVoiceAtMs = nowMs;
      return this.tick(nowMs);
    }
    this.#voiceMs = level <= SPEECH_LEVEL ? this.#voiceMs + spanMs : Math.max(0, this.#voiceMs - spanMs);
    if (this.#voiceMs < ATTACK_MS) return false;
    this.#status = 'speech';
    this.#lastVoiceAtMs = nowMs;
    return true;
  }

  /** Ends the speech of a stream that has stopped sending packets. Call it regularly; returns true on a change. */
  tick(nowMs: number): boolean {
    if (this.#status === 'silence' || nowMs - this.#lastVoiceAtMs < RELEASE_MS) return false;
    this.#status = 'silence';
    this.#voiceMs = 0;
    return true;
  }
}
