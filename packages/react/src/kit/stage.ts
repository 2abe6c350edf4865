// Which tile is in front.
import type { RemotePeer } from '@bloom/client';
import { useEffect, useState } from 'react';
import { usePeers } from '../index.js';
import { isScreen, isSpeaking, tracksOf } from './people.js';

/** Which tiles are large: all the same, one in front, or by itself as long as somebody shares a screen. */
export type StageLayout = 'automatic' | 'grid' | 'spotlight';

/** The order of tiles, and the one in front. */
export interface Stage {
  /** People, those who spoke last first; those who have not spoken follow in order of arrival. */
  readonly speakers: readonly RemotePeer[];
  /** Id of the track or peer that is shown in front; null if all tiles have the same size. */
  readonly front: string | null;
  /** Id of the pinned track or peer. */
  readonly pinned: string | null;
  /** Pins a track or peer, or unpins it. */
  readonly pin: (id: string) => void;
  /** Shows one tile in front, or all in the same size, until a screen is shared. */
  readonly toggle: () => void;
}

/** Chooses the tile in front: the pinned one, otherwise a shared screen, otherwise the last speaker if wanted. */
export function useStage(initial: StageLayout = 'automatic'): Stage {
  const peers = usePeers().filter(isShown);
  const [layout, setLayout] = useState(initial);
  const [pinned, setPinned] = useState<string | null>(null);
  const spoken = useSpokenLast(peers);
  const screen = peers.flatMap((peer) => tracksOf(peer, 'video')).find(isScreen)?.id;
  useEffect(() => {
    if (screen !== undefined) setLayout((before) => (before === 'grid' ? 'automatic' : before));
  }, [screen]);

  const speakers = [...peers];
  speakers.sort((a, b) => rankIn(spoken, a) - rankIn(spoken, b));
  const chosen = pinned === null || pinned === OWN ? pinned : tileIn(peers, pinned);
  const speaker = speakers[0];
  const picture = speaker === undefined ? undefined : tracksOf(speaker, 'video')[0];
  const wanted =
    layout === 'grid' ? null : (screen ?? (layout === 'spotlight' ? (picture?.id ?? speaker?.id ?? OWN) : null));
  const front = chosen ?? wanted;
  return {
    speakers,
    front,
    pinned: chosen,
    pin: (id) => setPinned(chosen === id ? null : id),
    toggle: () => {
      setPinned(null);
      setLayout(front === null ? 'spotlight' : 'grid');
    },
  };
}

/** Id of this participant's tile. */
export const OWN = 'own';

/** False for streams and recordings, which have nothing to show. */
export function isShown({ type, tracks }: RemotePeer): boolean {
  return type === 'webrtc' || tracks.length > 0;
}

/** Returns the tile of a track, or of a peer whose camera may have started since; null if it has left. */
function tileIn(peers: readonly RemotePeer[], id: string): string | null {
  for (const peer of peers) {
    const pictures = tracksOf(peer, 'video');
    if (pictures.some((track) => track.id === id)) return id;
    if (peer.id === id) return pictures[0]?.id ?? id;
  }
  return null;
}

/** Returns the ids of those who have spoken, the last first. */
function useSpokenLast(peers: readonly RemotePeer[]): readonly string[] {
  const [spoken, setSpoken] = useState<readonly string[]>([]);
  const speaking = peers.filter(isSpeaking).map(({ id }) => id);
  const key = speaking.join(' ');
  useEffect(() => {
    const now = key === '' ? [] : key.split(' ');
    setSpoken((before) => {
      // Those who keep speaking keep their places.
      const fresh = now.filter((id) => !before.slice(0, now.length).includes(id));
      return fresh.length === 0 ? before : [...fresh, ...before.filter((id) => !fresh.includes(id))];
    });
  }, [key]);
  return spoken;
}

function rankIn(spoken: readonly string[], { id }: RemotePeer): number {
  const rank = spoken.indexOf(id);
  return rank === -1 ? spoken.length : rank;
}
