// Camera and microphone before the call.
import type { DeviceKind } from '@bloom/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { type CallMedia, type CallSource, openCallMedia } from './call-media.js';

/** Controls of a device, before the call or in it. */
export interface DeviceControl {
  readonly on: boolean;
  /** Why the device could not be opened last time. */
  readonly error: Error | null;
  /** Opens the device, or another one by its id. */
  readonly turnOn: (deviceId?: string) => Promise<void>;
  /** Turns it off if it is on, and on otherwise. */
  readonly toggle: () => Promise<void>;
  /** What it sends; null while it is closed. */
  readonly media: MediaStreamTrack | null;
}

/** What a person brings to a call, and whether it is turned on. */
export interface JoiningMedia extends CallMedia {
  readonly on: Readonly<Record<DeviceKind, boolean>>;
}

/** The media of a person who has not joined yet. */
export interface Preview {
  readonly camera: DeviceControl;
  readonly microphone: DeviceControl;
  /** The unavailable devices in a sentence; null if everything is available. */
  readonly notice: string | null;
  /** False until the person has answered the browser's question. */
  readonly ready: boolean;
  /** Hands the media over to a call, which stops it; null while it is not ready. */
  readonly take: () => JoiningMedia | null;
}

type Devices<Value> = Readonly<Record<DeviceKind, Value>>;

interface State {
  readonly media: CallMedia;
  readonly tracks: Devices<MediaStreamTrack | null>;
  readonly errors: Devices<Error | null>;
}

const KINDS = ['camera', 'microphone'] as const;

/**
 * Opens camera and microphone for as long as the component is mounted, and again when `open` becomes another function.
 * What `take` hands over stays open.
 */
export function usePreview(open: () => Promise<CallMedia> = openCallMedia): Preview {
  const [state, setState] = useState<State | null>(null);
  const held = useRef<State | null>(null);
  /** The person may choose a device while the first ones open. */
  const opening = useRef<Promise<void>>(undefined);
  const show = useCallback((next: State | null): void => {
    held.current = next;
    setState(next);
  }, []);

  useEffect(() => {
    let isHere = true;
    opening.current = openAll(open).then((opened) => {
      if (isHere) show(opened);
      else close(opened);
    });
    return () => {
      isHere = false;
      close(held.current);
      show(null);
    };
  }, [open, show]);

  /** Replaces one track. The former one is closed first: a device may not open twice. */
  async function change(kind: DeviceKind, next: () => Promise<MediaStreamTrack | null>): Promise<void> {
    await opening.current;
    const before = held.current;
    if (before === null) return undefined;
    before.tracks[kind]?.stop();
    const { track, error } = await outcomeOf(next);
    const current = held.current;
    if (current === null || current.media !== before.media) return track?.stop();
    show({
      media: current.media,
      tracks: { ...current.tracks, [kind]: track },
      errors: { ...current.errors, [kind]: error },
    });
    return undefined;
  }

  function controlOf(kind: DeviceKind): DeviceControl {
    const media = state?.tracks[kind] ?? null;
    const turnOn = (deviceId?: string): Promise<void> =>
      change(kind, async () => (await held.current?.media[kind].open(deviceId)) ?? null);
    const turnOff = (): Promise<void> => change(kind, async () => null);
    const on = media !== null;
    return { on, error: state?.errors[kind] ?? null, media, turnOn, toggle: on ? turnOff : () => turnOn() };
  }

  function take(): JoiningMedia | null {
    const { current } = held;
    if (current === null) return null;
    held.current = null;
    const { media, tracks } = current;
    return {
      camera: startingWith(tracks.camera, media.camera),
      microphone: startingWith(tracks.microphone, media.microphone),
      notice: media.notice,
      on: { camera: tracks.camera !== null, microphone: tracks.microphone !== null },
    };
  }

  const notice = state?.media.notice ?? null;
  return { camera: controlOf('camera'), microphone: controlOf('microphone'), notice, ready: state !== null, take };
}

async function openAll(open: () => Promise<CallMedia>): Promise<State> {
  const media = await open();
  const [camera, microphone] = await Promise.all(KINDS.map((kind) => outcomeOf(() => media[kind].open())));
  return {
    media,
    tracks: { camera: camera?.track ?? null, microphone: microphone?.track ?? null },
    errors: { camera: camera?.error ?? null, microphone: microphone?.error ?? null },
  };
}

interface Outcome {
  readonly track: MediaStreamTrack | null;
  readonly error: Error | null;
}

async function outcomeOf(open: () => Promise<MediaStreamTrack | null>): Promise<Outcome> {
  try {
    return { track: await open(), error: null };
  } catch (error) {
    // A substitute of the page may fail too, and people may join without.
    return { track: null, error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/** Returns the source, which gives the track of the preview first. */
function startingWith(track: MediaStreamTrack | null, source: CallSource): CallSource {
  let waiting = track ?? undefined;
  return {
    open: async (deviceId) => {
      const first = waiting;
      waiting = undefined;
      if (deviceId === undefined && first?.readyState === 'live') return first;
      first?.stop();
      return source.open(deviceId);
    },
    metadata: source.metadata,
    stop: () => waiting?.stop(),
  };
}

function close(state: State | null): void {
  for (const kind of KINDS) state?.tracks[kind]?.stop();
}
