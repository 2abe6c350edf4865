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

/**
 * A `<video>` of one track. A remote track's quality follows the size of the element, unless `variant` is set. The
 * element is invisible while a remote track is muted or stalled, so that what is behind it shows instead of the last
 * picture.
 */
export function VideoTile({ track, variant, style, ...props }: VideoTileProps): ReactElement {
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

  const shown = hasPicture(track) ? style : { ...style, visibility: 'hidden' as const };
  return <video ref={element} autoPlay muted playsInline style={shown} {...props} />;
}

/** False while a remote track is muted, or its pictures are missing. */
function hasPicture(track: RemoteTrack | LocalTrack): boolean {
  return !('peerId' in track) || !(track.muted || track.stalled);
}

/** Props of `AudioRenderer`. */
export interface AudioRendererProps {
  /**
   * The browser plays no sound until the person has touched the page: show a button and call `play` when it is pressed.
   * `onBlocked` is called for each blocked sound, and any `play` starts all of them.
   */
  readonly onBlocked?: (play: () => void) => void;
  /** Id of the loudspeaker; by default, and where it is missing, the system's choice. */
  readonly speaker?: string | undefined;
}

/** Plays the audio of all others. */
export function AudioRenderer({ onBlocked, speaker }: AudioRendererProps): ReactElement {
  const client = useRoomClient();
  const notify = useRef(onBlocked);
  notify.current = onBlocked;
  useEffect(() => client.on('audioBlocked', (play) => notify.current?.(play)), [client]);
  return (
    <>
      {useTracks('audio').map((track) => (
        <Sound key={track.id} media={track.media as MediaStreamTrack} speaker={speaker} />
      ))}
    </>
  );
}

interface SoundProps {
  readonly media: MediaStreamTrack;
  readonly speaker: string | undefined;
}

function Sound({ media, speaker = '' }: SoundProps): ReactElement {
  const client = useRoomClient();
  const element = useRef<HTMLAudioElement>(null);
  useEffect(() => {
    const audio = element.current;
    if (audio === null) return undefined;
    audio.srcObject = new MediaStream([media]);
    return client.play(audio);
  }, [client, media]);
  useEffect(() => {
    // A loudspeaker that was unplugged, or a browser without a choice, leaves the sound where it is.
    if (speaker !== (element.current?.sinkId ?? '')) element.current?.setSinkId?.(speaker).catch(() => undefined);
  }, [speaker]);

  return <audio ref={element} />;
}
