import { ConnectionQuality, ConnectionQualityInfo, ConnectionQualityUpdate } from '@livekit/protocol';
import type { Endpoint } from '@bloom/rooms';
import type { RemoteTrack } from './participants.js';
import { type Message, speaks } from './responses.js';

type Quality = NonNullable<Endpoint['quality']>;

/** How long changes of qualities are gathered before the client is told. */
export const GATHER_MS = 500;

const QUALITY_OF: Readonly<Record<Quality, ConnectionQuality>> = {
  lost: ConnectionQuality.LOST,
  poor: ConnectionQuality.POOR,
  good: ConnectionQuality.GOOD,
  excellent: ConnectionQuality.EXCELLENT,
};
/** Mean opinion scores, of 5. */
const SCORE_OF: Readonly<Record<Quality, number>> = { lost: 0, poor: 2, good: 3.5, excellent: 4.5 };

/** What the client is told of who speaks, and of how well everybody's media flows. */
export class Figures {
  /** Ids of the tracks reported to the client as carrying speech. */
  readonly #speaking = new Set<string>();
  /** By endpoint. */
  readonly #qualities = new Map<string, Quality>();
  /** Endpoints whose quality the client has not been told. */
  readonly #untold = new Set<string>();

  /** Returns what to tell the client of a track that carries speech, or no longer does. */
  voice(track: RemoteTrack | undefined, active: boolean): Message | undefined {
    if (track === undefined || this.#speaking.has(track.trackId) === active) return undefined;
    if (active) this.#speaking.add(track.trackId);
    else this.#speaking.delete(track.trackId);

    return speaks(track.owner.sid, active);
  }

  /** Records a quality. Returns true if the client is to be told in `GATHER_MS`. */
  quality(endpointId: string, quality: Quality | undefined): boolean {
    if (quality === undefined) return false;
    this.#qualities.set(endpointId, quality);
    const starts = this.#untold.size === 0;
    this.#untold.add(endpointId);

    return starts;
  }

  forget(endpointId: string): void {
    this.#qualities.delete(endpointId);
    this.#untold.delete(endpointId);
  }

  /** Returns what the client has not been told. `sidOf`: undefined for somebody whom it does not know. */
  takeQualities(sidOf: (endpointId: string) => string | undefined): Message | undefined {
    const updates = [...this.#untold].flatMap((endpointId) => {
      const quality = this.#qualities.get(endpointId);
      const participantSid = sidOf(endpointId);
      if (quality === undefined || participantSid === undefined) return [];
      return new ConnectionQualityInfo({ participantSid, quality: QUALITY_OF[quality], score: SCORE_OF[quality] });
    });
    this.#untold.clear();

    return updates.length === 0
      ? undefined
      : { case: 'connectionQuality', value: new ConnectionQualityUpdate({ updates }) };
  }

  /** Returns all qualities once more, for a client that may have missed some. */
  repeatQualities(sidOf: (endpointId: string) => string | undefined): Message | undefined {
    for (const endpointId of this.#qualities.keys()) this.#untold.add(endpointId);

    return this.takeQualities(sidOf);
  }
}
