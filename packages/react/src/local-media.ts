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
  /** Published, also while it is off; undefined before it was on for the first time. */
  readonly track: LocalTrack | undefined;
  readonly on: boolean;
  /** True while the device opens or closes. */
  readonly busy: boolean;
  /** Why the device could not be opened the last time, or the server does not accept it, or does so no longer. */
  readonly error: DeviceError | RoomClientError | null;
  /** Opens the device, or another one by its id, and publishes it. It is closed with the call, or where the server refuses it. */
  readonly turnOn: (deviceId?: string) => Promise<void>;
  /** Stops sending, and the device with it. */
  readonly turnOff: () => Promise<void>;
  /** Turns it off when it is on, and on otherwise. */
  readonly toggle: () => Promise<void>;
}

/** Where the media of `useLocalMedia` comes from, and what the others read about it. */
export interface LocalMediaOptions {
  /**
   * Opens the media of a camera or a microphone, by default with `openDevice`: called with the id of the device that was chosen, and
   * without one otherwise, each time it is turned on.
   */
  readonly open?: (deviceId?: string) => Promise<MediaStreamTrack>;
  /** Returns what the others read in the metadata of the track beside `source` and `active`; asked whenever media was opened. */
  readonly metadata?: () => Readonly<Record<string, unknown>>;
}

/** What the others read of a track: where it comes from, and whether it is on. */
interface SourceMetadata {
  readonly source: MediaSource;
  readonly active?: boolean;
}

function sourceOf(tracks: readonly LocalTrack[], source: MediaSource): LocalTrack | undefined {
  return tracks.find(({ metadata }) => (metadata as SourceMetadata | null)?.source === source);
}

/** Opens media for the present call; none when that ends meanwhile, or it is not wanted any more. */
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

/** Publishes media that was opened here, and closes it once the room does not take it: the page cannot. */
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
 * Returns the controls of the camera, the microphone or the shared screen of this participant. The others read `{source, active}` in the
 * metadata of the track.
 */
export function useLocalMedia(source: MediaSource, options: LocalMediaOptions = {}): MediaControl {
  const client = useRoomClient();
  /** Those of the last rendering: an opening that is under way goes on with them. */
  const wished = useRef(options);
  wished.current = options;
  const track = sourceOf(useLocalTracks(), source);
  /** The last opening that is under way, and the one that a further press without a choice joins. */
  const opening = useRef<Promise<unknown>>(undefined);
  const pressed = useRef<Promise<void>>(undefined);
  /** Counts how often it was turned off: what was opened for a press before that is closed again. */
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
      // The end of the call, or of the press, is no failure of the device.
      if (failure instanceof RoomClientError && failure.code === 'LEFT') return;
      if (!(failure instanceof DeviceError || failure instanceof RoomClientError)) throw failure;
      setError(failure);
    } finally {
      setBusy(false);
    }
  }, []);

  // A mute is one of this hook, or follows from a device that was unplugged.
  useEffect(() => {
    const metadata = track?.metadata as SourceMetadata | undefined;
    if (track === undefined || metadata?.active === undefined || metadata.active === on) return;
    track.setMetadata({ ...metadata, active: on });
  }, [track, on]);
  useEffect(
    () =>
      client.on('unpublished', (refused) => {
        if (sourceOf([refused], source) === undefined) return;
        setError(
          new RoomClientError('PUBLISH_REFUSED', `the server accepts no ${refused.kind} from this peer any more`),
        );
      }),
    [client, source],
  );

  const turnOn = useCallback(
    (deviceId?: string): Promise<void> => {
      // A person presses again while the browser asks for permission.
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
            // An unmute may have opened one meanwhile.
            const replaced = await present.replace(await openOne(deviceId));
            replaced?.stop();
            present.setMetadata(described(!present.muted));
          }
          if (isWanted()) await present.unmute();
          // The call may have ended, or the press been taken back, while the device was opened.
          if (!client.localTracks.includes(present) || present.muted) present.media?.stop();
        });
      // One after another, so that no device is opened twice; a published track orders its mutes by itself. At once where nothing
      // is under way: some browsers ask for a screen only while a press is being handled.
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
        // The browser's own "stop sharing" button. It may be pressed before the server has answered.
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
