import type { Endpoint, EndpointTrack, SessionInput } from '@bloom/rooms';
import type { TrackKind } from '@bloom/sfu';
import type { WatchedSource } from './session-message.js';
import { SpeakerChoice } from './speaker-choice.js';

/** The tracks currently shown to a viewer. */
export type ShownTracks = Partial<Record<TrackKind, EndpointTrack>>;

/** The room as one viewer sees it, including the tracks shown to that viewer. */
export class WatchedRoom {
  readonly #source: WatchedSource;
  readonly #endpoints = new Map<string, Map<string, EndpointTrack>>();
  readonly #speaker = new SpeakerChoice();
  /** Ids of the tracks that currently carry speech. */
  readonly #voices = new Set<string>();

  /** `speaking`: ids of the tracks with speech, newest last. */
  constructor(source: WatchedSource, present: readonly Endpoint[], speaking: readonly string[]) {
    this.#source = source;
    for (const endpoint of present) this.#add(endpoint);
    for (const trackId of speaking) this.#voiceChanged(trackId, 'speech');
  }

  /** Handles an event of the room. Returns whether the shown tracks may have changed. */
  handle(input: SessionInput): boolean {
    switch (input.type) {
      case 'endpointAdded':
        this.#add(input.endpoint);
        return input.endpoint.tracks.length > 0;
      case 'endpointRemoved':
        for (const trackId of this.#endpoints.get(input.endpointId)?.keys() ?? []) this.#voices.delete(trackId);
        this.#speaker.gone(input.endpointId);
        return this.#endpoints.delete(input.endpointId);
      case 'tracksAdded':
        for (const track of input.tracks) this.#endpoints.get(input.endpointId)?.set(track.trackId, track);
        return true;
      case 'tracksRemoved':
        for (const trackId of input.trackIds) {
          // A track that ends is not reported as silent.
          this.#fallSilent(input.endpointId, trackId);
          this.#endpoints.get(input.endpointId)?.delete(trackId);
        }
        return true;
      case 'voiceActivity':
        return this.#voiceChanged(input.trackId, input.status) && this.#source.type === 'speaker';
      case 'timer':
        this.#speaker.released();
        return true;
      default:
        return false;
    }
  }

  /** Returns the tracks to show. `hold`: they must not change for `HOLD_MS`. */
  shown(): { tracks: ShownTracks; hold: boolean } {
    const source = this.#source;
    if (source.type === 'endpoint') return { tracks: this.#tracksOf(source.endpointId), hold: false };
    if (source.type === 'track') return { tracks: this.#track(source.trackId), hold: false };
    const { current, changed } = this.#speaker.choose(this.#candidates());

    return { tracks: current === undefined ? {} : this.#tracksOf(current), hold: changed };
  }

  /** Returns the tracks that would be shown at some time if they were not encrypted. */
  encrypted(): EndpointTrack[] {
    const source = this.#source;
    const watched =
      source.type === 'endpoint' ? [this.#endpoints.get(source.endpointId)] : [...this.#endpoints.values()];

    return watched
      .flatMap((tracks) => [...(tracks?.values() ?? [])])
      .filter((track) => !canShow(track) && (source.type !== 'track' || track.trackId === source.trackId));
  }

  /** Returns false for a track that this viewer may not see. */
  #voiceChanged(trackId: string, status: 'speech' | 'silence'): boolean {
    const owner = [...this.#endpoints].find(([, tracks]) => tracks.has(trackId))?.[0];
    if (owner === undefined) return false;
    if (status === 'silence') {
      this.#fallSilent(owner, trackId);
    } else {
      this.#voices.add(trackId);
      this.#speaker.voice(owner, 'speech');
    }

    return true;
  }

  /** Ends the speech of a track. The participant may still be speaking on another one. */
  #fallSilent(endpointId: string, trackId: string): void {
    if (!this.#voices.delete(trackId)) return;
    const others = [...(this.#endpoints.get(endpointId)?.keys() ?? [])];
    if (!others.some((id) => this.#voices.has(id))) this.#speaker.voice(endpointId, 'silence');
  }

  #add({ id, tracks }: Endpoint): void {
    this.#endpoints.set(id, new Map(tracks.map((track) => [track.trackId, track])));
  }

  /** Returns the participants with video, or those with audio only when nobody has video. */
  #candidates(): string[] {
    const ids = [...this.#endpoints.keys()];
    const visible = ids.filter((id) => this.#tracksOf(id).video !== undefined);

    return visible.length > 0 ? visible : ids.filter((id) => this.#tracksOf(id).audio !== undefined);
  }

  #tracksOf(endpointId: string): ShownTracks {
    const shown: ShownTracks = {};
    for (const track of this.#endpoints.get(endpointId)?.values() ?? []) {
      if (canShow(track)) shown[track.kind] ??= track;
    }

    return shown;
  }

  #track(trackId: string): ShownTracks {
    for (const tracks of this.#endpoints.values()) {
      const track = tracks.get(trackId);
      if (track !== undefined) return canShow(track) ? { [track.kind]: track } : {};
    }

    return {};
  }
}

/** WHEP has no key, so it would play encrypted tracks as noise. */
function canShow({ encrypted }: EndpointTrack): boolean {
  return encrypted !== true;
}
