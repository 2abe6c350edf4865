import type { Bytes } from '../frame.js';
import { DerivedKeys, keyIdOf, type KeyRing, newSenderId, type Secret } from './keys.js';
import { authenticated, divide, join, split } from './layout.js';
import { decodeHeader, type FrameKeys, open, seal } from './sframe.js';

/** Why frames of a track cannot be shown. */
export type FrameProblem = 'NO_KEY' | 'NOT_ENCRYPTED';

/** Frames may arrive out of order by this many of their sender's frames. */
const REPLAY_WINDOW = 1_024;

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
  readonly #derived = new DerivedKeys();
  readonly #replays = new ReplayWindow();

  constructor(ring: KeyRing) {
    this.#ring = ring;
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
      body = await open(await this.#keys(secret, header.keyId), { header, metadata: authenticated(parts) }, parts.body);
    } catch {
      return 'NO_KEY';
    }
    if (!this.#replays.accept(header.keyId.join(), header.counter)) return 'NO_KEY';
    const opened = new Uint8Array(parts.clear.length + body.length);
    opened.set(parts.clear);
    opened.set(body, parts.clear.length);
    return opened;
  }

  #keys(secret: Secret, keyId: Bytes): Promise<FrameKeys> {
    return this.#derived.of(secret, keyId);
  }
}

/** Refuses frames that were opened before (RFC 9605 section 9.3), in constant memory. */
export class ReplayWindow {
  #keyId = '';
  #highest = -1;
  readonly #seen = new Float64Array(REPLAY_WINDOW).fill(-1);

  /** Returns false for a frame that was accepted before, or is too old to tell. */
  accept(keyId: string, counter: number): boolean {
    if (keyId !== this.#keyId) {
      this.#keyId = keyId;
      this.#highest = -1;
      this.#seen.fill(-1);
    }
    const slot = counter % REPLAY_WINDOW;
    if (counter <= this.#highest - REPLAY_WINDOW || this.#seen[slot] === counter) return false;
    this.#seen[slot] = counter;
    this.#highest = Math.max(this.#highest, counter);
    return true;
  }
}
