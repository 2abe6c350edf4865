import { type UpdateTrackSettings, VideoQuality } from '@livekit/protocol';
import type { MediaCommand, Variant } from '@bloom/sfu';
import type { RemoteTrack } from './participants.js';
import { chooseVariant } from './track-info.js';

interface Setting {
  paused: boolean;
  variant: Variant | undefined;
  /** Most pictures per second; null = no limit. */
  fps: number | null;
}

const DEFAULT: Setting = { paused: false, variant: undefined, fps: null };

/** What a client wants of the tracks that it receives. */
export class TrackSettings {
  readonly #peerId: string;
  readonly #settings = new WeakMap<RemoteTrack, Setting>();
  /** Tracks that are paused until they are connected. */
  readonly #held = new WeakSet<RemoteTrack>();

  constructor(peerId: string) {
    this.#peerId = peerId;
  }

  /** Applies a setting. Returns the commands that this requires. */
  apply(track: RemoteTrack, setting: UpdateTrackSettings): MediaCommand[] {
    const { disabled, quality, width, height } = setting;
    const before = this.#settings.get(track) ?? DEFAULT;
    const paused = disabled || quality === VideoQuality.OFF;
    const variant = paused ? before.variant : chooseVariant(track.info, { quality, width, height });
    const fps = paused ? before.fps : setting.fps || null;
    this.#settings.set(track, { paused, variant, fps });

    return [
      ...(variant !== undefined && variant !== before.variant ? [this.#target(track, variant)] : []),
      ...(fps !== before.fps ? [this.#limit(track, fps)] : []),
      ...(paused !== before.paused ? [this.#pause(track, paused)] : []),
    ];
  }

  /** Pauses a track. Returns the commands that this requires. */
  disable(track: RemoteTrack): MediaCommand[] {
    const before = this.#settings.get(track) ?? DEFAULT;
    this.#settings.set(track, { ...before, paused: true });

    return before.paused ? [] : [this.#pause(track, true)];
  }

  /** Returns the command that stops a track until it is connected. */
  hold(track: RemoteTrack): MediaCommand {
    this.#held.add(track);

    return this.#pause(track, true);
  }

  /** Returns the commands for a track that has just been connected. By default a client gets the best layer. */
  again(track: RemoteTrack): MediaCommand[] {
    const best = chooseVariant(track.info, { quality: VideoQuality.HIGH, width: 0, height: 0 });
    const setting = this.#settings.get(track) ?? { ...DEFAULT, variant: best };

    return [
      ...(setting.variant === undefined ? [] : [this.#target(track, setting.variant)]),
      ...(setting.fps === null ? [] : [this.#limit(track, setting.fps)]),
      ...(this.#held.delete(track) || setting.paused ? [this.#pause(track, setting.paused)] : []),
    ];
  }

  #target({ trackId }: RemoteTrack, variant: Variant): MediaCommand {
    return { type: 'setTargetVariant', peerId: this.#peerId, trackId, variant };
  }

  #limit({ trackId }: RemoteTrack, framesPerSecond: number | null): MediaCommand {
    return { type: 'setMaxFrameRate', peerId: this.#peerId, trackId, framesPerSecond };
  }

  #pause({ trackId }: RemoteTrack, paused: boolean): MediaCommand {
    return { type: 'setTrackPaused', peerId: this.#peerId, trackId, paused };
  }
}
