import { type Shown, shownHeight, type Size, variantFor, watchSize } from './quality.js';
import type { RemoteTrack } from './remote.js';
import type { Variant } from './signaling.js';

/** The part of a call that viewing needs. */
export interface ViewingHost {
  track(id: string): RemoteTrack | undefined;
  /** True if the server can stop a track for this client alone. */
  pauses(): boolean;
  send(type: 'setTargetTrackVariant' | 'setTrackPaused', data: object): void;
  /** Plays an element until the returned function is called. */
  play(element: HTMLMediaElement): () => void;
}

interface Watched {
  readonly element: HTMLElement;
  size: Size;
}

/** A tile that is scrolled past or moved on the page must not cost a keyframe. */
const HIDDEN_MS = 250;

/** What this client wants of others' tracks: a variant, or nothing while no element on screen shows the picture. */
export class Viewing {
  readonly #host: ViewingHost;
  readonly #watched = new Map<string, Set<Watched>>();
  readonly #targets = new Map<string, Variant>();
  /** Ids of tracks that the client has stopped on their way. */
  readonly paused = new Set<string>();
  readonly #hiding = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(host: ViewingHost) {
    this.#host = host;
  }

  watch(trackId: string, element: HTMLElement): () => void {
    const watched: Watched = { element, size: { width: 0, height: 0 } };
    const all = this.#watched.get(trackId) ?? new Set();
    this.#watched.set(trackId, all.add(watched));
    const adjust = (): void => this.#adjust(trackId);
    const stop = watchSize(element, (size) => {
      watched.size = size;
      adjust();
    });
    // The first picture reveals the shape.
    element.addEventListener('resize', adjust);
    const isStarted = 'autoplay' in element && element.autoplay === true;
    const end = isStarted ? this.#host.play(element as HTMLMediaElement) : undefined;
    return () => {
      stop();
      end?.();
      element.removeEventListener('resize', adjust);
      if (all.delete(watched)) adjust();
    };
  }

  setVariant(trackId: string, variant: Variant): void {
    if (this.#targets.get(trackId) === variant) return;
    this.#targets.set(trackId, variant);
    this.#host.send('setTargetTrackVariant', { trackId, variant });
  }

  setPaused(trackId: string, paused: boolean): void {
    this.#keep(trackId);
    if (paused === this.paused.has(trackId)) return;
    if (paused) this.paused.add(trackId);
    else this.paused.delete(trackId);
    this.#sendPaused(trackId, paused);
  }

  /** Repeats all requests for a track, which a new session of the server does not know. */
  repeat(trackId: string): void {
    const variant = this.#targets.get(trackId);
    if (variant !== undefined) this.#host.send('setTargetTrackVariant', { trackId, variant });
    if (this.paused.has(trackId)) this.#sendPaused(trackId, true);
  }

  /** Forgets a track that has ended. */
  forget(trackId: string): void {
    this.#keep(trackId);
    this.#targets.delete(trackId);
    this.paused.delete(trackId);
    this.#watched.delete(trackId);
  }

  #adjust(trackId: string): void {
    const track = this.#host.track(trackId);
    const watched = this.#watched.get(trackId);
    if (track === undefined || watched === undefined) return;
    // An element that hides until it plays needs a first picture, wherever it is. Audio is heard without being seen.
    const hidden = track.media?.kind === 'video' && [...watched].every(({ element, size }) => isHidden(element, size));
    if (hidden && this.#host.pauses()) return this.#hide(trackId);
    if (watched.size > 0) this.#choose(track, watched);
    return this.setPaused(trackId, false);
  }

  #choose({ id, variants, variant }: RemoteTrack, watched: ReadonlySet<Watched>): void {
    if (variants.length < 2) return;
    const wanted = variantFor(
      [...watched].map(({ element, size }) => shownIn(element, size, variant)),
      variants,
    );
    if (wanted !== undefined) this.setVariant(id, wanted);
  }

  #hide(trackId: string): void {
    if (this.#hiding.has(trackId) || this.paused.has(trackId)) return;
    this.#hiding.set(
      trackId,
      setTimeout(() => this.setPaused(trackId, true), HIDDEN_MS),
    );
  }

  #keep(trackId: string): void {
    clearTimeout(this.#hiding.get(trackId));
    this.#hiding.delete(trackId);
  }

  #sendPaused(trackId: string, paused: boolean): void {
    if (this.#host.pauses()) this.#host.send('setTrackPaused', { trackId, paused });
  }
}

function isHidden(element: HTMLElement, { width, height }: Size): boolean {
  const hasPicture = !(element instanceof HTMLVideoElement) || element.videoWidth > 0;
  return hasPicture && (width === 0 || height === 0);
}

function shownIn(element: HTMLElement, size: Size, received: Variant | null): Shown {
  const { videoWidth = 0, videoHeight = 0 } = element instanceof HTMLVideoElement ? element : {};
  if (videoWidth === 0) return { height: size.height };
  const cover = getComputedStyle(element).objectFit === 'cover';
  const height = shownHeight(size, { width: videoWidth, height: videoHeight }, cover);
  return { height, ...(received === null ? {} : { received: { height: videoHeight, variant: received } }) };
}
