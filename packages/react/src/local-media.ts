import {
  DeviceError,
  type DeviceKind,
  type LocalTrack,
  openDevice,
  openScreen,
  type PublishOptions,
  type RoomClient,
} from '@bloom/client';
import { useCallback, useState } from 'react';
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
  /** Why the device could not be opened the last time. */
  readonly error: DeviceError | null;
  /** Opens the device, or another one by its id, and publishes it. It is closed with the call, or where the server refuses it. */
  readonly turnOn: (deviceId?: string) => Promise<void>;
  /** Stops sending, and the device with it. */
  readonly turnOff: () => Promise<void>;
  /** Turns it off when it is on, and on otherwise. */
  readonly toggle: () => Promise<void>;
}

/** The others see `{source}` in the metadata of the track. */
interface SourceMetadata {
  readonly source: MediaSource;
}

/** Opens media for the present call; none when that ends meanwhile. */
async function openForCall(
  client: RoomClient,
  open: () => Promise<readonly MediaStreamTrack[]>,
): Promise<readonly MediaStreamTrack[]> {
  let hasEnded = false;
  const stop = client.on('ended', () => (hasEnded = true));
  const opened = await open().finally(stop);
  if (!hasEnded) return opened;
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

/** Returns the controls of the camera, the microphone or the shared screen of this participant. */
export function useLocalMedia(source: MediaSource): MediaControl {
  const client = useRoomClient();
  const track = useLocalTracks().find(({ metadata }) => (metadata as SourceMetadata | null)?.source === source);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<DeviceError | null>(null);
  const on = track !== undefined && !track.muted;

  const run = useCallback(async (operation: () => Promise<unknown>) => {
    setBusy(true);
    setError(null);
    try {
      await operation();
    } catch (failure) {
      if (!(failure instanceof DeviceError)) throw failure;
      setError(failure);
    } finally {
      setBusy(false);
    }
  }, []);

  const turnOn = useCallback(
    (deviceId?: string) =>
      run(async () => {
        if (source === 'screen') return publishScreen();
        const device = deviceId === undefined ? {} : { id: deviceId };
        if (track === undefined) {
          const reopen = (): Promise<MediaStreamTrack> => openDevice(source);
          const opened = await openForCall(client, async () => [await openDevice(source, device)]);
          for (const media of opened) await publishOpened(client, media, { metadata: { source }, reopen });
          return;
        }
        if (deviceId !== undefined) {
          const before = track.media;
          await track.replace(await openDevice(source, device));
          before?.stop();
        }
        await track.unmute();
        // The call may have ended while the device was opened.
        if (!client.localTracks.includes(track)) track.media?.stop();
      }),
    [client, run, source, track],
  );

  async function publishScreen(): Promise<void> {
    const opened = await openForCall(client, openScreen);
    try {
      for (const media of opened) {
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

  const turnOff = useCallback(
    () =>
      run(async () => {
        if (source !== 'screen') return track?.mute();
        const shared = client.localTracks.filter(({ metadata }) =>
          ['screen', 'screen-sound'].includes((metadata as SourceMetadata | null)?.source ?? ''),
        );
        for (const one of shared) {
          one.media?.stop();
          await one.unpublish();
        }
        return undefined;
      }),
    [client, run, source, track],
  );

  return { track, on, busy, error, turnOn, turnOff, toggle: on ? turnOff : turnOn };
}
