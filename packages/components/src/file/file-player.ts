import { createReadStream } from 'node:fs';
import { randomUUID } from 'node:crypto';
import type { Component, ComponentHost } from '@bloom/rooms';
import { epochNow, type Clock } from '@bloom/time';
import { h264Frames, opusFrames, type FileFrame } from './frames.js';
import { Pacer } from './pacer.js';
import type { FileSource } from './source-path.js';

const CHUNK_BYTES = 64 * 1024;
/** Longer gaps between key pictures are logged, since a participant who joins in between waits for the next one. */
const LONG_GROUP_MS = 2_000;

/** Plays one file into a room, then removes itself. */
export function playFile(host: ComponentHost, source: FileSource, clock: Clock): Component {
  const { media, componentId, log, resumed } = host;
  const { kind } = source;
  const codec = kind === 'audio' ? 'opus' : 'h264';
  const trackId = resumed?.tracks[0]?.trackId ?? randomUUID();
  /** Where playback began: at the last key picture that the former node had sent. */
  const fromMs = resumed?.progress.positionMs ?? 0;
  const feed = media.openFeed({ trackId, endpointId: componentId, kind, codec });
  host.report({
    do: 'publish',
    tracks: [{ trackId, kind, codec, metadata: null, encodings: [], disabledEncodings: [] }],
  });

  const ending = new AbortController();
  let positionMs = fromMs;
  let keyAtMs = fromMs;
  let state: 'playing' | 'ended' | 'failed' = 'playing';
  const play = async (): Promise<void> => {
    const pacer = new Pacer(clock);
    const epochMs = epochNow() - clock.now();
    const ticksPerMs = kind === 'audio' ? 48 : 90;
    let endMs = fromMs;
    let warned = false;
    for await (const frame of framesOf(source)) {
      const atMs = frame.timestamp / ticksPerMs;
      if (atMs < fromMs) continue;
      const dueMs = await pacer.until(atMs - fromMs, ending.signal);
      if (ending.signal.aborted) return;
      if (frame.key) keyAtMs = atMs;
      else if (!warned && atMs - keyAtMs > LONG_GROUP_MS) {
        warned = true;
        log.warn('file.long_group', { path: source.path, detail: 'late receivers wait for the next key picture' });
      }
      feed.send({ ...frame, dueMs: epochMs + dueMs });
      positionMs = atMs;
      endMs = atMs + frame.durationMs;
    }
    await pacer.until(endMs - fromMs, ending.signal);
  };
  const played = play().then(
    () => {
      state = 'ended';
      host.report({ do: 'finished' });
    },
    (error: unknown) => {
      state = 'failed';
      log.error('file.failed', { path: source.path, error });
      host.report({ do: 'crashed', reason: error instanceof Error ? error.message : String(error) });
    },
  );

  return {
    inspect: () => ({ state, file: source.path, kind, codec, trackId, positionMs: Math.round(positionMs) }),
    progress: () => ({ positionMs: Math.floor(keyAtMs) }),
    close: async () => {
      ending.abort();
      feed.close();
      await played;
    },
  };
}

function framesOf({ path, kind, framerate }: FileSource): AsyncGenerator<FileFrame> {
  const chunks = createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>;

  return kind === 'audio' ? opusFrames(chunks) : h264Frames(chunks, framerate ?? 30);
}
