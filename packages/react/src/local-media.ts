import {
  DeviceError,
  type DeviceKind,
  type LocalTrack,
  openDevice,
  openScreen,
  type PublishOptions,
  type RoomClient,
  RoomClientError,
} from '@bloom/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useLocalTracks, useRoomClient } from './room.js';

/** What a participant may publish. */
export type MediaSource = DeviceKind | 'screen';

/** Controls of a camera, a microphone or the shared screen. */
export interface MediaControl {
  /** The published track, even while it is off; undefined before it is first turned on. */
  readonly track: LocalTrack | undefined;
  readonly on: boolean;
  /** True while the device opens or closes. */
  readonly busy: boolean;
  /** Why the device could not be opened last time, or why the server refuses the track or no longer accepts it. */
  readonly error: DeviceError | RoomClientError | null;
  /** Opens and publishes the device, or another one by its id. It closes with the call, or if the server refuses it. */
  readonly turnOn: (deviceId?: string) => Promise<void>;
  /** Stops sending and closes the device. */
  readonly turnOff: () => Promise<void>;
  /** Turns it off if it is on, and on otherwise. */
  readonly toggle: () => Promise<void>;
}

/** The source of media for `useLocalMedia`, and the metadata that the others read. */
export interface LocalMediaOptions {
  /**
   * Opens the media of a camera or microphone each time it is turned on, by default with `openDevice`. The id is that
   * of the chosen device, if any.
   */
  readonly open?: (deviceId?: string) => Promise<MediaStreamTrack>;
  /** Returns metadata for the track in addition to `source` and `active`. Called whenever media was opened. */
  readonly metadata?: () => Readonly<Record<string, unknown>>;
}

/** The metadata that the others read about a track: its source, and whether it is on. */
interface SourceMetadata {
  readonly source: MediaSource;
  readonly active?: boolean;
}

function sourceOf(tracks: readonly LocalTrack[], source: MediaSource): LocalTrack | undefined {
  return tracks.find(({ metadata }) => (metadata as SourceMetadata | null)?.source === source);
}

/** Opens media for the current call. Returns nothing if the call ends first or the media is no longer wanted. */
async function openForCall(
  client: RoomClient,
  isWanted: () => boolean,
  open: () => Promise<readonly MediaStreamTrack[]>,
): Promise<readonly MediaStreamTrack[]> {
  let hasEnded = false;
  const stop = client.on('ended', () => (hasEnded = true));
  const opened = await open().finally(stop);
  if (!hasEnded && isWanted()) return opened;
  for (const media of opened) media.stop();
  return [];
}

/**
 * Publishes media opened here, and closes it when the room refuses it or no longer accepts it, since the page cannot.
 */
async function publishOpened(
  client: RoomClient,
  media: MediaStreamTrack,
  options: PublishOptions,
): Promise<LocalTrack> {
  const track = await client.publish(media, options).catch((error: unknown) => {
    media.stop();
    throw error;
  });
  const close = (): void => {
    for (const stop of stops) stop();
    track.media?.stop();
  };
  const stops = [
    client.on('ended', close),
    client.on('unpublished', (refused) => {
      if (refused === track) close();
    }),
  ];
  return track;
}

/**
 * Returns the controls of this participant's camera, microphone or shared screen. The others read `{source, active}` in
 * the track's metadata.
 */
export function useLocalMedia(source: MediaSource, options: LocalMediaOptions = {}): MediaControl {
  const client = useRoomClient();
  /** Options of the last rendering, which an opening in progress uses. */
  const wished = useRef(options);
  wished.current = options;
  const track = sourceOf(useLocalTracks(), source);
  /** The last opening in progress, which a further press without a choice joins. */
  const opening = useRef<Promise<unknown>>(undefined);
  const pressed = useRef<Promise<void>>(undefined);
  /** Counts how often it was turned off: media opened for an earlier press is closed again. */
  const offs = useRef(0);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<MediaControl['error']>(null);
  const on = track !== undefined && !track.muted;

  const run = useCallback(async (operation: () => Promise<unknown>) => {
    setBusy(true);
    setError(null);
    try {
      await operation();
    } catch (failure) {
      // The end of the call, or of the press, is not a failure of the device.
      if (failure instanceof RoomClientError && failure.code === 'LEFT') return;
      if (!(failure instanceof DeviceError || failure instanceof RoomClientError)) throw failure;
      setError(failure);
    } finally {
      setBusy(false);
    }
  }, []);

  // This hook mutes the track, or an unplugged device does.
  useEffect(() => {
    const metadata = track?.metadata as SourceMetadata | undefined;
    if (track === undefined || metadata?.active === undefined || metadata.active === on) return;
    track.setMetadata({ ...metadata, active: on });
  }, [track, on]);
  useEffect(
    () =>
      client.on('unpublished', (refused) => {
        if (sourceOf([refused], source) === undefined) return;
        setError(new RoomClientError('PUBLISH_REFUSED', `the server no longer accepts ${refused.kind} from this peer`));
      }),
    [client, source],
  );

  const turnOn = useCallback(
    (deviceId?: string): Promise<void> => {
      // A person may press again while the browser asks for permission.
      if (deviceId === undefined && pressed.current !== undefined) return pressed.current;
      const before = offs.current;
      const isWanted = (): boolean => offs.current === before;
      const open = (): Promise<void> =>
        run(async () => {
          if (source === 'screen') return publishScreen(isWanted);
          const openOne = (id?: string): Promise<MediaStreamTrack> =>
            wished.current.open?.(id) ?? openDevice(source, id === undefined ? {} : { id });
          const described = (active: boolean): object => ({ ...wished.current.metadata?.(), source, active });
          const present = sourceOf(client.localTracks, source);
          if (present === undefined) {
            const reopen = (): Promise<MediaStreamTrack> => openOne();
            const opened = await openForCall(client, isWanted, async () => [await openOne(deviceId)]);
            for (const media of opened) await publishOpened(client, media, { metadata: described(true), reopen });
            return;
          }
          if (deviceId !== undefined) {
            // An unmute may have opened media by now.
            const replaced = await present.replace(await openOne(deviceId));
            replaced?.stop();
            present.setMetadata(described(!present.muted));
          }
          if (isWanted()) await present.unmute();
          // The call may have ended, or the press been undone, while the device was opening.
          if (!client.localTracks.includes(present) || present.muted) present.media?.stop();
        });
      // Run in turn, so that no device is opened twice; a published track orders its mutes itself. Start immediately if
      // nothing else is running: some browsers ask for a screen only while handling a press.
      const isPublished = deviceId === undefined && sourceOf(client.localTracks, source) !== undefined;
      const former = isPublished ? undefined : opening.current;
      const done: Promise<void> = (former?.then(open, open) ?? open()).finally(() => {
        if (opening.current === done) opening.current = undefined;
        if (pressed.current === done) pressed.current = undefined;
      });
      opening.current = done;
      if (deviceId === undefined) pressed.current = done;
      return done;
    },
    [client, run, source],
  );

  async function publishScreen(isWanted: () => boolean): Promise<void> {
    const opened = await openForCall(client, isWanted, openScreen);
    try {
      for (const media of opened) {
        if (!isWanted()) media.stop();
        if (media.readyState === 'ended') continue;
        const metadata = { source: media.kind === 'video' ? 'screen' : 'screen-sound' };
        const sharing = publishOpened(client, media, { metadata, simulcast: false });
        // The browser's own "stop sharing" button, possibly pressed before the server has answered.
        media.addEventListener('ended', () => void sharing.then((shared) => shared.unpublish()).catch(() => undefined));
        await sharing;
      }
    } catch (error) {
      for (const media of opened) media.stop();
      throw error;
    }
  }

  const turnOff = useCallback((): Promise<void> => {
    offs.current += 1;
    pressed.current = undefined;
    return run(async () => {
      if (source !== 'screen') return sourceOf(client.localTracks, source)?.mute();
      const shared = client.localTracks.filter(({ metadata }) =>
        ['screen', 'screen-sound'].includes((metadata as SourceMetadata | null)?.source ?? ''),
      );
      for (const one of shared) {
        one.media?.stop();
        await one.unpublish();
      }
      return undefined;
    });
  }, [client, run, source]);

  return { track, on, busy, error, turnOn, turnOff, toggle: on ? turnOff : turnOn };
}
