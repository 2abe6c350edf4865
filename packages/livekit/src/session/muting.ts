import { MuteTrackRequest } from '@livekit/protocol';
import type { SessionAction } from '@bloom/rooms';
import type { Publishing } from './publishing.js';
import type { Message } from './responses.js';
import { fromSession } from './session-message.js';

export interface MutingParts {
  peerId: string;
  publishing: Publishing;
  act: (action: SessionAction) => void;
  send: (message: Message) => void;
  /** Called when what others see of the client has changed. */
  changed: () => void;
}

/** Mutes the client's tracks: it does so itself, and the server does. */
export class Muting {
  readonly #parts: MutingParts;
  /** Ids of the client's tracks that the server withholds. */
  readonly #withheld = new Set<string>();

  constructor(parts: MutingParts) {
    this.#parts = parts;
  }

  byClient(sid: string, muted: boolean): void {
    const { publishing, act, changed } = this.#parts;
    const change = publishing.mute(sid, muted);
    if (change === undefined) return;
    changed();
    if (!change.isPublished) return;
    act({ type: 'setTrackMetadata', trackId: change.trackId, metadata: change.metadata });
    this.apply(change.trackId, muted);
    // Clients of LiveKit may undo a mute of the server.
    if (!muted && this.#withheld.delete(change.trackId))
      act({ type: 'send', text: fromSession.unmuted(change.trackId) });
  }

  byServer(trackId: string, muted: boolean): void {
    const { publishing, send } = this.#parts;
    const sid = publishing.sidOf(trackId);
    if (sid === undefined) return;
    if (muted) this.#withheld.add(trackId);
    else this.#withheld.delete(trackId);
    send({ case: 'mute', value: new MuteTrackRequest({ sid, muted }) });
    this.byClient(sid, muted);
  }

  /** Tells the room and its media plane. */
  apply(trackId: string, muted: boolean): void {
    const { peerId, act } = this.#parts;
    act({ type: 'setTrackMuted', trackId, muted });
    act({ type: 'media', command: { type: 'setTrackMuted', peerId, trackId, muted } });
  }
}
