import { ConnectionQuality } from '@livekit/protocol';
import type { Endpoint, SessionAction } from '@bloom/rooms';
import { encodeQualities } from './encoded.js';
import type { RemoteTrack } from './participants.js';
import { type Message, speaks } from './responses.js';

type Quality = NonNullable<Endpoint['quality']>;

/** How long changes of qualities are gathered before the client is told. */
const GATHER_MS = 500;

const QUALITY_OF: Readonly<Record<Quality, ConnectionQuality>> = {
  lost: ConnectionQuality.LOST,
  poor: ConnectionQuality.POOR,
  good: ConnectionQuality.GOOD,
  excellent: ConnectionQuality.EXCELLENT,
};
/** Mean opinion scores, of 5. */
const SCORE_OF: Readonly<Record<Quality, number>> = { lost: 0, poor: 2, good: 3.5, excellent: 4.5 };

export interface FiguresParts {
  act: (action: SessionAction) => void;
  send: (message: Message) => void;
  /** Sends a SignalResponse. */
  sendBytes: (bytes: Uint8Array) => void;
  /** Returns the sid under which the client knows an endpoint; undefined for somebody whom it does not know. */
  sidOf: (endpointId: string) => string | undefined;
}

/** Tells the client who speaks, and how well everybody's media flows. */
export class Figures {
  readonly #parts: FiguresParts;
  /** Ids of the tracks reported to the client as carrying speech. */
  readonly #speaking = new Set<string>();
  /** By endpoint. */
  readonly #qualities = new Map<string, Quality>();
  /** Endpoints whose quality the client has not been told. */
  readonly #untold = new Set<string>();
  #isGathering = false;
  /** Clients drop qualities that they are told before their media is connected. */
  #isConnected = false;

  constructor(parts: FiguresParts) {
    this.#parts = parts;
  }

  /** A track carries speech, or no longer does. */
  voice(track: RemoteTrack | undefined, active: boolean): void {
    if (track === undefined || this.#speaking.has(track.trackId) === active) return;
    if (active) this.#speaking.add(track.trackId);
    else this.#speaking.delete(track.trackId);
    this.#parts.send(speaks(track.owner.sid, active));
  }

  /** The media of endpoints flows differently, or that of the client. The room gathers such changes. */
  changed(qualities: readonly (readonly [endpointId: string, quality: Quality])[]): void {
    for (const [endpointId, quality] of qualities) {
      this.#qualities.set(endpointId, quality);
      this.#untold.add(endpointId);
    }
    if (this.#isConnected) this.tell();
  }

  /** Records the quality of an endpoint that the client learns of. */
  quality(endpointId: string, quality: Quality | undefined): void {
    if (quality === undefined) return;
    this.#qualities.set(endpointId, quality);
    this.#untold.add(endpointId);
    this.#gather();
  }

  forget(endpointId: string): void {
    this.#qualities.delete(endpointId);
    this.#untold.delete(endpointId);
  }

  /** The client's media is connected. */
  connected(): void {
    this.#isConnected = true;
    this.#gather();
  }

  /** Tells the client what it has not been told, when the timer `quality` has ended. */
  tell(): void {
    const updates = [...this.#untold].flatMap((endpointId) => {
      const quality = this.#qualities.get(endpointId);
      const participantSid = this.#parts.sidOf(endpointId);
      if (quality === undefined || participantSid === undefined) return [];
      return { participantSid, quality: QUALITY_OF[quality], score: SCORE_OF[quality] };
    });
    this.#untold.clear();
    this.#isGathering = false;
    if (updates.length === 0) return;
    this.#parts.sendBytes(encodeQualities(updates));
  }

  /** Tells a client all qualities once more that may have missed some. */
  repeat(): void {
    for (const endpointId of this.#qualities.keys()) this.#untold.add(endpointId);
    this.tell();
  }

  #gather(): void {
    if (this.#isGathering || !this.#isConnected || this.#untold.size === 0) return;
    this.#isGathering = true;
    this.#parts.act({ type: 'setTimer', name: 'quality', ms: GATHER_MS });
  }
}
