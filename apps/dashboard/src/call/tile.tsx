import type { RemotePeer, RemoteTrack, Variant } from '@bloom/client';
import { type MediaControl, VideoTile } from '@bloom/react';
import { useState } from 'react';
import { hueOf } from '../media/generated-picture.js';
import { MicrophoneIcon } from '../ui/icons.js';
import { isActive, isScreen, nameOfPeer, tracksOf } from './call-view.js';

const VARIANT_NAMES: Record<Variant, string> = { l: 'Low', m: 'Medium', h: 'High' };

function Avatar({ name }: { readonly name: string }) {
  const hue = hueOf(name);
  return (
    <div className="avatar" style={{ background: `hsl(${hue} 45% 24%)` }} aria-hidden="true">
      <span style={{ background: `hsl(${hue} 60% 46%)` }}>{[...name][0]?.toUpperCase()}</span>
    </div>
  );
}

function Who({ name, muted }: { readonly name: string; readonly muted: boolean }) {
  return (
    <span className="who">
      {name}
      {muted && (
        <span className="muted-mark" role="img" aria-label="muted">
          <MicrophoneIcon off />
        </span>
      )}
    </span>
  );
}

export interface PeerTilesProps {
  readonly peer: RemotePeer;
  /** The track, or the peer without a picture, that is shown large; null if all have the same size. */
  readonly main: string | null;
}

/** One tile per video track of a peer, or one tile without a picture. */
export function PeerTiles({ peer, main }: PeerTilesProps) {
  const pictures = tracksOf(peer, 'video');
  const sounds = tracksOf(peer, 'audio');
  const name = nameOfPeer(peer);
  return (pictures.length === 0 ? [null] : pictures).map((track) => (
    <RemoteTile
      key={track?.id ?? peer.id}
      name={track !== null && isScreen(track) ? `Screen of ${name}` : name}
      track={track}
      isMain={main !== null && main === (track?.id ?? peer.id)}
      muted={sounds.length > 0 && !sounds.some(isActive)}
      speaking={sounds.some((sound) => sound.speaking && isActive(sound))}
    />
  ));
}

interface RemoteTileProps {
  readonly name: string;
  readonly track: RemoteTrack | null;
  readonly isMain: boolean;
  readonly muted: boolean;
  readonly speaking: boolean;
}

/** Choice that leaves the quality to the size of the tile. */
const AUTOMATIC = '';

function RemoteTile({ name, track, isMain, muted, speaking }: RemoteTileProps) {
  const [size, setSize] = useState('');
  const [chosen, setChosen] = useState<Variant | undefined>(undefined);
  const visible = track !== null && isActive(track);
  return (
    <figure className={`tile ${speaking ? 'speaking' : ''} ${isMain ? 'main' : ''}`} aria-label={name}>
      {track && (
        <VideoTile
          track={track}
          variant={chosen}
          aria-label={`Picture of ${name}`}
          onResize={({ currentTarget: { videoWidth, videoHeight } }) => setSize(`${videoWidth}×${videoHeight}`)}
        />
      )}
      {!visible && <Avatar name={name} />}
      <figcaption>
        <Who name={name} muted={muted} />
        {visible && <span className="size">{size}</span>}
        {visible && track.variants.length > 1 && (
          <select
            aria-label={`Quality of the picture of ${name}`}
            value={chosen ?? AUTOMATIC}
            onChange={({ target: { value } }) => setChosen(value === AUTOMATIC ? undefined : (value as Variant))}
          >
            <option value={AUTOMATIC}>Automatic</option>
            {track.variants.map((variant) => (
              <option key={variant} value={variant}>
                {VARIANT_NAMES[variant]}
              </option>
            ))}
          </select>
        )}
      </figcaption>
    </figure>
  );
}

export interface OwnTileProps {
  readonly name: string;
  readonly camera: MediaControl;
  readonly isMuted: boolean;
  readonly isGenerated: boolean;
}

export function OwnTile({ name, camera, isMuted, isGenerated }: OwnTileProps) {
  return (
    <figure className="tile own" aria-label={`${name} (you)`}>
      {camera.track !== undefined && (
        <VideoTile track={camera.track} className={isGenerated ? '' : 'mirrored'} aria-label="Your own picture" />
      )}
      {!camera.on && <Avatar name={name} />}
      <figcaption>
        <Who name={`${name} (you)`} muted={isMuted} />
        <span className="size">{isGenerated ? 'generated picture' : 'camera'}</span>
      </figcaption>
    </figure>
  );
}
