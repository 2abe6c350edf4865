import type { Component, ComponentHost, ComponentProgress, ReceivedTrack } from '@bloom/rooms';
import type { MediaTap } from '@bloom/sfu';
import { systemClock } from '@bloom/time';
import type { ForkedProcess, Processes } from '@bloom/processes';
import { COMPOSED_CODECS, type FromEngine, type ToEngine } from './engine/engine-protocol.js';
import type { LiveStream } from './live-stream.js';

export interface HlsComponentOptions {
  host: ComponentHost;
  stream: LiveStream;
  processes: Processes;
  entry: URL;
  hangMs?: number;
  /** Properties returned by the API until the stream is playable. */
  properties: Readonly<Record<string, unknown>>;
  /** Called once, when no more parts will come and players are no longer served. */
  onClosing(how: { movedAway: boolean }): void;
  /** Called with the number of pictures the compositor has left out since the last call. */
  onPicturesLeftOut(pictures: number): void;
}

const DEFAULT_HANG_MS = 10_000;
const FINISH_MS = 3_000;
/** Base usage is 110 MiB, plus whatever its decoders share. */
const MEMORY_MIB = 512;

/**
 * A running HLS component, which feeds the room's tracks to the compositor and the compositor's parts to the stream.
 */
export class HlsComponent implements Component {
  readonly #options: HlsComponentOptions;
  readonly #engine: ForkedProcess<ToEngine, FromEngine>;
  readonly #taps = new Map<string, MediaTap>();
  #parts = 0;
  #bytes = 0;
  #picturesLeftOut = 0;
  #newestPartAtMs: number | null = null;
  #playable = false;
  #failed = false;
  #closing: Promise<void> | undefined;

  constructor(options: HlsComponentOptions) {
    this.#options = options;
    const { host } = options;
    // Nobody is told again.
    const { stream: former, playable = former !== undefined } = host.resumed?.progress ?? {};
    this.#playable = playable;
    const { processes, entry, hangMs = DEFAULT_HANG_MS } = options;
    this.#engine = processes.start({
      kind: 'compositor',
      entry,
      memoryMib: MEMORY_MIB,
      hangMs,
      onMessage: (message) => this.#fromEngine(message),
      onCrash: (reason) => this.fail(`the compositor ended: ${reason}`),
    });
    // Its viewers wait for the next part, even if nobody publishes.
    if (host.resumed?.progress.stream !== undefined) void this.#engine.send({ type: 'start' });
  }

  inspect(): object {
    return {
      state: this.#failed
        ? 'failed'
        : this.#closing !== undefined
          ? 'closing'
          : this.#playable
            ? 'playable'
            : 'starting',
      processId: this.pid ?? null,
      tracks: [...this.#taps.keys()],
      parts: this.#parts,
      bytes: this.#bytes,
      /** Pictures beyond a limit or without memory. */
      picturesLeftOut: this.#picturesLeftOut,
      /** Arrival time of the newest part; null before the first. */
      newestPartAt: this.#newestPartAtMs,
    };
  }

  /** Process id of the compositor. */
  get pid(): number | undefined {
    return this.#engine.pid;
  }

  receive(tracks: readonly ReceivedTrack[]): void {
    if (this.#closing !== undefined) return;
    const wanted = new Set(tracks.map(({ track }) => track.trackId));
    for (const [trackId, tap] of this.#taps) {
      if (wanted.has(trackId)) continue;
      this.#taps.delete(trackId);
      void tap.close();
    }
    void this.#engine.send({
      type: 'tracks',
      tracks: tracks.map(({ origin, track: { trackId: id, kind } }) => ({ id, origin, kind })),
    });
    for (const trackId of wanted) if (!this.#taps.has(trackId)) this.#taps.set(trackId, this.#tap(trackId));
  }

  async freeze(frozen: boolean): Promise<void> {
    if (this.#closing !== undefined) return;
    await this.#options.stream.freeze(frozen);
  }

  progress(): ComponentProgress {
    const stream = this.#options.stream.progress();

    return stream === undefined ? {} : { stream, playable: this.#playable };
  }

  /** Fails the component; the room continues without it. */
  fail(reason: string): void {
    if (this.#failed || this.#closing !== undefined) return;
    this.#failed = true;
    this.#options.host.report({ do: 'crashed', reason });
  }

  close(moved = false): Promise<void> {
    this.#closing ??= this.#end(moved);

    return this.#closing;
  }

  /** A room may also end while it is about to move: only its giving away says that the stream goes on elsewhere. */
  async #end(movedAway: boolean): Promise<void> {
    const { stream, onClosing } = this.#options;
    const how = { movedAway };
    stream.hide(how);
    onClosing(how);
    await Promise.allSettled([...this.#taps.values()].map((tap) => tap.close()));
    this.#taps.clear();
    await this.#engine.finish({ type: 'finish' }, FINISH_MS);
    stream.end();
  }

  #tap(trackId: string): MediaTap {
    return this.#options.host.media.openTap({
      trackId,
      codecs: COMPOSED_CODECS,
      onFrame: ({ codec, timestamp, senderMs, key, data }) => {
        const time = senderMs === undefined ? { timestamp } : { timestamp, senderMs };

        return this.#engine.send({ type: 'unit', unit: { track: trackId, codec, ...time, key, data } });
      },
    });
  }

  #countLeftOut(sum: number): void {
    if (sum === this.#picturesLeftOut) return;
    this.#options.onPicturesLeftOut(sum - this.#picturesLeftOut);
    this.#picturesLeftOut = sum;
  }

  #fromEngine(message: FromEngine): void {
    const { stream, host, properties } = this.#options;
    if (message.type === 'started') stream.started(bufferOf(message.init), message.codecs);
    else if (message.type === 'keyframeWanted') this.#taps.get(message.track)?.requestKeyframe();
    else if (message.type === 'leftOut')
      host.log.warn('hls.track_left_out', { trackId: message.track, reason: message.reason });
    else if (message.type === 'alive') this.#countLeftOut(message.picturesLeftOut);
    else if (message.type === 'part') {
      this.#parts++;
      this.#bytes += message.part.data.length;
      this.#newestPartAtMs = systemClock.wall();
      stream.append({ ...message.part, data: bufferOf(message.part.data) });
      if (this.#playable || !message.part.hasPicture || !stream.hasPlaylist) return;
      this.#playable = true;
      host.report({ do: 'playable', properties: { ...properties, playable: true } });
    }
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
