import type { LocalTrack, RemoteTrack } from '@bloom/client';
import { type ComponentProps, type ReactElement, useEffect, useRef } from 'react';
import { useRoomClient, useTracks } from './room.js';

/** Props of `VideoTile`: those of `<video>`, and the track. */
export interface VideoTileProps extends ComponentProps<'video'> {
  /** A track of another participant, or an own one as a preview. */
  readonly track: RemoteTrack | LocalTrack;
}

/** A `<video>` of one track. The quality of a remote track follows the size of the element. */
export function VideoTile({ track, ...props }: VideoTileProps): ReactElement {
  const client = useRoomClient();
  const element = useRef<HTMLVideoElement>(null);
  const { media } = track;
  const remoteId = 'peerId' in track ? track.id : undefined;

  useEffect(() => {
    if (element.current !== null) element.current.srcObject = media === null ? null : new MediaStream([media]);
  }, [media]);
  useEffect(() => {
    if (remoteId === undefined || element.current === null) return undefined;
    return client.watch(remoteId, element.current);
  }, [client, remoteId]);

  return <video ref={element} autoPlay muted playsInline {...props} />;
}

/** Props of `AudioRenderer`. */
export interface AudioRendererProps {
  /** The browser plays no sound before the person has touched the page: show a button, and call `play` when it is pressed. */
  readonly onBlocked?: (play: () => void) => void;
}

/** Plays the sound of all others. */
export function AudioRenderer({ onBlocked }: AudioRendererProps): ReactElement {
  return (
    <>
      {useTracks('audio').map((track) => (
        <Sound key={track.id} media={track.media as MediaStreamTrack} onBlocked={onBlocked} />
      ))}
    </>
  );
}

interface SoundProps {
  readonly media: MediaStreamTrack;
  readonly onBlocked: AudioRendererProps['onBlocked'];
}

function Sound({ media, onBlocked }: SoundProps): ReactElement {
  const element = useRef<HTMLAudioElement>(null);
  const blocked = useRef(onBlocked);
  blocked.current = onBlocked;

  useEffect(() => {
    const audio = element.current;
    if (audio === null) return;
    audio.srcObject = new MediaStream([media]);
    const play = (): void => {
      audio.play().catch((error: unknown) => {
        // The play of an element that goes away is interrupted; only a refusal of the browser matters.
        if (error instanceof DOMException && error.name === 'NotAllowedError') blocked.current?.(play);
      });
    };
    play();
  }, [media]);

  return <audio ref={element} />;
}
