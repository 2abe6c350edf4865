import { DeviceError, type DeviceKind, type LocalTrack, openDevice, openScreen } from '@bloom/client';
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
  /** Opens the device, or another one by its id, and publishes it. */
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
          return client.publish(await openDevice(source, device), { metadata: { source }, reopen });
        }
        if (deviceId !== undefined) {
          const before = track.media;
          await track.replace(await openDevice(source, device));
          before?.stop();
        }
        return track.unmute();
      }),
    [client, run, source, track],
  );

  async function publishScreen(): Promise<void> {
    for (const media of await openScreen()) {
      const metadata = { source: media.kind === 'video' ? 'screen' : 'screen-sound' };
      const shared = await client.publish(media, { metadata, simulcast: false });
      // The browser's own "stop sharing" button.
      media.addEventListener('ended', () => void shared.unpublish());
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
