import type { LocalTrack, RemoteTrack, Variant } from '@bloom/client';
import { type ComponentProps, type ReactElement, useEffect, useRef } from 'react';
import { useRoomClient, useTracks } from './room.js';

/** Props of `VideoTile`: those of `<video>`, and the track. */
export interface VideoTileProps extends ComponentProps<'video'> {
  /** A track of another participant, or of this one as a preview. */
  readonly track: RemoteTrack | LocalTrack;
  /** Variant of a remote track to receive, on screen or off. By default the size of the element decides. */
  readonly variant?: Variant | undefined;
}

/** A `<video>` of one track. A remote track's quality follows the size of the element, unless `variant` is set. */
export function VideoTile({ track, variant, ...props }: VideoTileProps): ReactElement {
  const client = useRoomClient();
  const element = useRef<HTMLVideoElement>(null);
  const { media } = track;
  const remoteId = 'peerId' in track ? track.id : undefined;

  useEffect(() => {
    if (element.current !== null) element.current.srcObject = media === null ? null : new MediaStream([media]);
  }, [media]);
  const isChosen = variant !== undefined;
  useEffect(() => {
    if (remoteId === undefined || element.current === null) return undefined;
    if (!isChosen) return client.watch(remoteId, element.current);
    client.setPaused(remoteId, false);
    return () => {
      if (client.track(remoteId) !== undefined) client.setPaused(remoteId, true);
    };
  }, [client, remoteId, isChosen]);
  useEffect(() => {
    if (remoteId !== undefined && variant !== undefined) client.setVariant(remoteId, variant);
  }, [client, remoteId, variant]);

  return <video ref={element} autoPlay muted playsInline {...props} />;
}

/** Props of `AudioRenderer`. */
export interface AudioRendererProps {
  /**
   * The browser plays no sound until the person has touched the page: show a button and call `play` when it is pressed.
   * `onBlocked` is called for each blocked sound, and any `play` starts all of them.
   */
  readonly onBlocked?: (play: () => void) => void;
}

/** Plays the audio of all others. */
export function AudioRenderer({ onBlocked }: AudioRendererProps): ReactElement {
  const blocked = useRef(new Set<() => void>());
  return (
    <>
      {useTracks('audio').map((track) => (
        <Sound key={track.id} media={track.media as MediaStreamTrack} blocked={blocked.current} onBlocked={onBlocked} />
      ))}
    </>
  );
}

interface SoundProps {
  readonly media: MediaStreamTrack;
  /** Functions that start the blocked sounds, one each. */
  readonly blocked: Set<() => void>;
  readonly onBlocked: AudioRendererProps['onBlocked'];
}

function Sound({ media, blocked, onBlocked }: SoundProps): ReactElement {
  const element = useRef<HTMLAudioElement>(null);
  const notify = useRef(onBlocked);
  notify.current = onBlocked;

  useEffect(() => {
    const audio = element.current;
    if (audio === null) return undefined;
    audio.srcObject = new MediaStream([media]);
    const play = (): void => {
      blocked.delete(play);
      audio.play().catch((error: unknown) => {
        // Playback of an element being removed is interrupted; only a refusal by the browser matters.
        if (element.current === null || !(error instanceof DOMException && error.name === 'NotAllowedError')) return;
        blocked.add(play);
        notify.current?.(() => {
          for (const one of blocked) one();
        });
      });
    };
    play();
    return () => void blocked.delete(play);
  }, [media, blocked]);

  return <audio ref={element} />;
}
