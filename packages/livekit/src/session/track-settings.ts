import { type UpdateTrackSettings, VideoQuality } from '@livekit/protocol';
import type { MediaCommand, Variant } from '@bloom/sfu';
import type { RemoteTrack } from './participants.js';
import { chooseVariant } from './track-info.js';

interface Setting {
  paused: boolean;
  variant: Variant | undefined;
}

/** What a client wants of the tracks that it receives. */
export class TrackSettings {
  readonly #peerId: string;
  readonly #settings = new WeakMap<RemoteTrack, Setting>();

  constructor(peerId: string) {
    this.#peerId = peerId;
  }

  /** Applies a setting. Returns the commands that this requires. */
  apply(track: RemoteTrack, { disabled, quality, width, height }: UpdateTrackSettings): MediaCommand[] {
    const paused = disabled || quality === VideoQuality.OFF;
    const variant = paused ? this.#settings.get(track)?.variant : chooseVariant(track.info, { quality, width, height });
    const before = this.#settings.get(track) ?? { paused: false, variant: undefined };
    this.#settings.set(track, { paused, variant });

    return [
      ...(variant !== undefined && variant !== before.variant ? [this.#target(track, variant)] : []),
      ...(paused !== before.paused ? [this.#pause(track, paused)] : []),
    ];
  }

  /** Pauses a track. Returns the commands that this requires. */
  disable(track: RemoteTrack): MediaCommand[] {
    const before = this.#settings.get(track);
    this.#settings.set(track, { variant: before?.variant, paused: true });

    return before?.paused === true ? [] : [this.#pause(track, true)];
  }

  /** Returns the commands for a track that has just been connected. By default a client gets the best layer. */
  again(track: RemoteTrack): MediaCommand[] {
    const best = chooseVariant(track.info, { quality: VideoQuality.HIGH, width: 0, height: 0 });
    const setting = this.#settings.get(track) ?? { variant: best, paused: false };

    return [
      ...(setting.variant === undefined ? [] : [this.#target(track, setting.variant)]),
      ...(setting.paused ? [this.#pause(track, true)] : []),
    ];
  }

  #target({ trackId }: RemoteTrack, variant: Variant): MediaCommand {
    return { type: 'setTargetVariant', peerId: this.#peerId, trackId, variant };
  }

  #pause({ trackId }: RemoteTrack, paused: boolean): MediaCommand {
    return { type: 'setTrackPaused', peerId: this.#peerId, trackId, paused };
  }
}
