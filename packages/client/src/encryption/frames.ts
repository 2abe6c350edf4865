import type { Bytes } from '../frame.js';
import { DerivedKeys, keyIdOf, type KeyRing, newSenderId } from './keys.js';
import { authenticated, divide, join, split } from './layout.js';
import { concat, decodeHeader, open, seal } from './sframe.js';

/** Why frames of a track cannot be shown. */
export type FrameProblem = 'NO_KEY' | 'NOT_ENCRYPTED';

/** Frames may arrive out of order by this many of their sender's frames. */
const REPLAY_WINDOW = 1_024;
/** Senders whose frames are told apart. Only frames that opened count, so that strangers cannot use them up. */
const MAX_SENDERS = 10_000;

/** Seals what one participant sends. All its tracks share one key and one counter. */
export class FrameSealer {
  readonly #ring: KeyRing;
  readonly #senderId = newSenderId();
  readonly #derived = new DerivedKeys();
  #counter = 0;

  constructor(ring: KeyRing) {
    this.#ring = ring;
  }

  /** Returns the sealed frame, or undefined for one that must not be sent: no key is set, or it is too large. */
  async seal(frame: Bytes, kind: 'audio' | 'video'): Promise<Bytes | undefined> {
    const secret = await this.#ring.current;
    if (secret === undefined) return undefined;
    const keyId = keyIdOf(secret, this.#senderId);
    const keys = await this.#derived.of(secret, keyId);
    const parts = divide(frame, kind);
    const counter = this.#counter;
    this.#counter += 1;
    return join({ ...parts, body: await seal(keys, { keyId, counter, metadata: authenticated(parts) }, parts.body) });
  }
}

/** Opens the frames of one received track. */
export class FrameOpener {
  readonly #ring: KeyRing;
  readonly #replays: Replays;
  readonly #derived = new DerivedKeys();

  /** @param replays shared by all tracks of a client */
  constructor(ring: KeyRing, replays: Replays) {
    this.#ring = ring;
    this.#replays = replays;
  }

  /** Returns the frame as its encoder made it, or why it must not be shown. */
  async open(frame: Bytes): Promise<Bytes | FrameProblem> {
    const parts = split(frame);
    const header = parts === undefined ? undefined : decodeHeader(parts.body);
    if (parts === undefined || header === undefined) return 'NOT_ENCRYPTED';
    const secret = await this.#ring.find(header.keyId);
    if (secret === undefined) return 'NO_KEY';
    let body;
    try {
      const keys = await this.#derived.of(secret, header.keyId);
      body = await open(keys, { header, metadata: authenticated(parts) }, parts.body);
    } catch {
      return 'NO_KEY';
    }
    if (!this.#replays.accept(header.keyId.join(), header.counter)) return 'NO_KEY';
    return concat(parts.clear, body);
  }
}

/** Refuses frames that were opened before (RFC 9605 section 9.3), on whichever track, in bounded memory. */
export class Replays {
  readonly #senders = new Map<string, ReplayWindow>();

  /** Returns false for a frame that was accepted before, or that cannot be told from one. */
  accept(keyId: string, counter: number): boolean {
    const known = this.#senders.get(keyId);
    if (known !== undefined) return known.accept(counter);
    if (this.#senders.size >= MAX_SENDERS) return false;
    const window = new ReplayWindow();
    this.#senders.set(keyId, window);
    return window.accept(counter);
  }
}

/** The last frames of one sender: a bit for each. */
class ReplayWindow {
  #highest = -1;
  readonly #seen = new Uint8Array(REPLAY_WINDOW / 8);

  accept(counter: number): boolean {
    if (counter <= this.#highest - REPLAY_WINDOW) return false;
    for (let next = Math.max(this.#highest + 1, counter - REPLAY_WINDOW + 1); next <= counter; next += 1) {
      this.#mark(next, false);
    }
    this.#highest = Math.max(this.#highest, counter);
    if (this.#isMarked(counter)) return false;
    this.#mark(counter, true);
    return true;
  }

  #isMarked(counter: number): boolean {
    const at = counter % REPLAY_WINDOW;
    return ((this.#seen[at >> 3] ?? 0) & (1 << (at & 7))) !== 0;
  }

  #mark(counter: number, seen: boolean): void {
    const at = counter % REPLAY_WINDOW;
    const before = this.#seen[at >> 3] ?? 0;
    this.#seen[at >> 3] = seen ? before | (1 << (at & 7)) : before & ~(1 << (at & 7));
  }
}
