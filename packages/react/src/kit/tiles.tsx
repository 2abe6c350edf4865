import type { LocalTrack, Quality, RemotePeer, RemoteTrack } from '@bloom/client';
import type { CSSProperties, ReactElement } from 'react';
import { usePeers, usePeopleStatus, useRoomClient } from '../index.js';
import { isActive, isScreen, isSpeaking, nameOfPeer, tracksOf } from './people.js';
import { isShown, OWN, type Stage } from './stage.js';
import { Tile, type TileProps } from './tile.js';
import { type Rectangle, useTileLayout } from './tile-layout.js';

/** This participant, as the tile shows them. */
export interface OwnTile {
  readonly name: string;
  /** The published camera, even while it is off. */
  readonly track: LocalTrack | undefined;
  readonly cameraOn: boolean;
  readonly microphoneOn: boolean;
  /** True if the picture is shown like in a mirror, which is usual for cameras. */
  readonly mirrored?: boolean;
}

/** Props of `Tiles`. */
export interface TilesProps {
  readonly stage: Stage;
  readonly own: OwnTile;
  /** Returns the name of a peer; by default that of its metadata. */
  readonly nameOf?: (peer: RemotePeer) => string;
}

/** With more tiles the area may scroll: those who spoke last come first then, so that they are in view. */
const STILL = 9;

/**
 * Everybody in the room and every shared screen, laid out by area: all in the same size, or one in front with as many
 * others as fit. Pictures that are out of view cost nothing.
 */
export function Tiles({ stage, own, nameOf = nameOfPeer }: TilesProps): ReactElement {
  const selfId = useRoomClient().id;
  const arrived = usePeers().filter(isShown);
  const status = new Map(usePeopleStatus().map((person) => [person.peerId, person]));
  const { front, pinned, pin, speakers } = stage;
  const ordered = front !== null || arrived.length >= STILL ? speakers : arrived;

  const all: (TileProps & { readonly id: string })[] = ordered.flatMap((peer) =>
    tilesOf(peer, nameOf(peer), status.get(peer.id)?.quality ?? null),
  );
  all.push({
    id: OWN,
    name: `${own.name} (you)`,
    track: own.track ?? null,
    own: true,
    off: !own.cameraOn,
    muted: !own.microphoneOn,
    quality: status.get(selfId)?.quality ?? null,
    speaking: own.microphoneOn && status.get(selfId)?.speaking === true,
    className: own.mirrored === true ? 'bloom-mirrored' : undefined,
  });
  const inFront = all.findIndex(({ id }) => id === front);
  const [first] = inFront === -1 ? [] : all.splice(inFront, 1);
  if (first !== undefined) all.unshift(first);

  const { ref, tiles } = useTileLayout(all.length, { spotlight: first !== undefined });
  const fitting = tiles.length === 0 || tiles.length >= all.length ? all.length : tiles.length - 1;
  const places: readonly (Rectangle | undefined)[] = tiles;
  return (
    <div ref={ref} className="bloom-tiles">
      {all.slice(0, fitting).map(({ id, ...tile }, i) => (
        <Tile
          key={id}
          {...tile}
          front={id === first?.id}
          pinned={id === pinned}
          onPin={all.length > 1 ? () => pin(id) : undefined}
          style={styleOf(places[i])}
        />
      ))}
      {fitting < all.length && (
        <button
          type="button"
          className="bloom-button bloom-rest"
          style={styleOf(places[fitting])}
          onClick={stage.toggle}
        >
          {`${all.length - fitting} more`}
        </button>
      )}
    </div>
  );
}

/** Returns a tile for each picture of a peer, or one without a picture. */
function tilesOf(peer: RemotePeer, name: string, quality: Quality | null): (TileProps & { readonly id: string })[] {
  const pictures = tracksOf(peer, 'video');
  const sounds = tracksOf(peer, 'audio');
  const shared: readonly (RemoteTrack | null)[] = pictures.length === 0 ? [null] : pictures;
  return shared.map((track) => {
    const screen = track !== null && isScreen(track);
    return {
      id: track?.id ?? peer.id,
      name: screen ? `Screen of ${name}` : name,
      track,
      screen,
      quality,
      unavailable:
        (track === null ? peer.tracks : [track]).find((one) => one.unavailable !== null)?.unavailable ?? null,
      muted: !screen && sounds.length > 0 && !sounds.some(isActive),
      speaking: !screen && isSpeaking(peer),
    };
  });
}

function styleOf(place: Rectangle | undefined): CSSProperties | undefined {
  return place === undefined ? undefined : { position: 'absolute', ...place };
}
