import { useEffect, useMemo, useRef, useState } from 'react';
import type { Call } from '../call/call.js';
import type { CallView, RemotePeerView, RemoteTrackView, Variant } from '../call/call-view.js';
import { hueOf } from '../media/generated-picture.js';
import { MicrophoneIcon } from './icons.js';

const variantNames: Record<Variant, string> = { l: 'Low', m: 'Medium', h: 'High' };

function Avatar({ name }: { readonly name: string }) {
  const hue = hueOf(name);
  return (
    <div className="avatar" style={{ background: `hsl(${hue} 45% 24%)` }} aria-hidden="true">
      <span style={{ background: `hsl(${hue} 60% 46%)` }}>{[...name][0]?.toUpperCase()}</span>
    </div>
  );
}

interface PictureProps {
  readonly track: MediaStreamTrack;
  readonly label: string;
  readonly mirrored?: boolean;
  readonly onSize?: (size: string) => void;
  /** Watches the size of the element. Returns the function that ends it. */
  readonly watch?: ((element: HTMLElement) => () => void) | undefined;
}

/** A muted video: audio has an element of its own. */
function Picture({ track, label, mirrored = false, onSize, watch }: PictureProps) {
  const ref = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (ref.current) ref.current.srcObject = new MediaStream([track]);
  }, [track]);
  useEffect(() => (ref.current !== null && watch !== undefined ? watch(ref.current) : undefined), [watch]);
  return (
    <video
      ref={ref}
      className={mirrored ? 'mirrored' : ''}
      aria-label={label}
      autoPlay
      muted
      playsInline
      onResize={({ currentTarget: { videoWidth, videoHeight } }) => onSize?.(`${videoWidth}×${videoHeight}`)}
    />
  );
}

interface SoundProps {
  readonly track: MediaStreamTrack;
  readonly onBlocked: () => void;
}

function Sound({ track, onBlocked }: SoundProps) {
  const ref = useRef<HTMLAudioElement>(null);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    element.srcObject = new MediaStream([track]);
    element.play().catch((error: unknown) => {
      // A later track interrupts the play of an earlier one; only a refusal of the browser matters.
      if (error instanceof Error && error.name === 'NotAllowedError') onBlocked();
    });
    // oxlint-disable-next-line react/exhaustive-deps -- the callback is new on each render, the track is not
  }, [track]);
  return <audio ref={ref} />;
}

export interface PeerTilesProps {
  readonly peer: RemotePeerView;
  readonly call: Call;
  /** The track, or the peer without a picture, that is shown large; null where all are alike. */
  readonly main: string | null;
  readonly onSoundBlocked: () => void;
}

/** One tile per video track of a peer, or one without a picture, and all of its audio. */
export function PeerTiles({ peer, call, main, onSoundBlocked }: PeerTilesProps) {
  const pictures = peer.tracks.filter((track) => track.kind === 'video');
  const sounds = peer.tracks.filter((track) => track.kind === 'audio');
  const muted = sounds.length > 0 && sounds.every((track) => !track.active);
  const speaking = sounds.some((track) => track.speaking && track.active);
  return (
    <>
      {(pictures.length === 0 ? [null] : pictures).map((track) => (
        <RemoteTile
          key={track?.id ?? peer.id}
          name={track?.source === 'screen' ? `Screen of ${peer.name}` : peer.name}
          track={track}
          isMain={main !== null && main === (track?.id ?? peer.id)}
          muted={muted}
          speaking={speaking}
          call={call}
        />
      ))}
      {sounds.map((track) => (
        <Sound key={track.id} track={track.track} onBlocked={onSoundBlocked} />
      ))}
    </>
  );
}

interface RemoteTileProps {
  readonly name: string;
  readonly track: RemoteTrackView | null;
  readonly isMain: boolean;
  readonly muted: boolean;
  readonly speaking: boolean;
  readonly call: Call;
}

/** Value of the choice that leaves the quality to the size of the tile. */
const AUTOMATIC = '';

function RemoteTile({ name, track, isMain, muted, speaking, call }: RemoteTileProps) {
  const [size, setSize] = useState('');
  const visible = track?.active === true;
  const watched = visible && track.chosen === null ? track.id : undefined;
  const watch = useMemo(
    () => (watched === undefined ? undefined : (element: HTMLElement) => call.watch(watched, element)),
    [call, watched],
  );
  return (
    <figure className={`tile ${speaking ? 'speaking' : ''} ${isMain ? 'main' : ''}`} aria-label={name}>
      {track && <Picture track={track.track} label={`Picture of ${name}`} onSize={setSize} watch={watch} />}
      {!visible && <Avatar name={name} />}
      <figcaption>
        <span className="who">
          {name}
          {muted && (
            <span className="muted-mark" role="img" aria-label="muted">
              <MicrophoneIcon off />
            </span>
          )}
        </span>
        {visible && <span className="size">{size}</span>}
        {track && visible && track.variants.length > 1 && (
          <select
            aria-label={`Quality of the picture of ${name}`}
            value={track.chosen ?? AUTOMATIC}
            onChange={({ target: { value } }) => call.choose(track.id, value === AUTOMATIC ? null : (value as Variant))}
          >
            <option value={AUTOMATIC}>Automatic</option>
            {[...track.variants].map((variant) => (
              <option key={variant} value={variant}>
                {variantNames[variant]}
              </option>
            ))}
          </select>
        )}
      </figcaption>
    </figure>
  );
}

export function OwnTile({ view }: { readonly view: CallView }) {
  return (
    <figure className="tile own" aria-label={`${view.name} (you)`}>
      {view.ownPicture && (
        <Picture track={view.ownPicture} label="Your own picture" mirrored={view.ownSource === 'camera'} />
      )}
      {!view.cameraOn && <Avatar name={view.name} />}
      <figcaption>
        <span className="who">
          {view.name} (you)
          {!view.microphoneOn && (
            <span className="muted-mark" role="img" aria-label="muted">
              <MicrophoneIcon off />
            </span>
          )}
        </span>
        <span className="size">{view.ownSource === 'generated' ? 'generated picture' : 'camera'}</span>
      </figcaption>
    </figure>
  );
}
