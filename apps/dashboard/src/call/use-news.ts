import type { RemotePeer, RoomClient } from '@bloom/client';
import { useEffect, useRef, useState } from 'react';
import { nameOfPeer, newsOf } from './call-view.js';

/** Label of the messages between pages in a room. */
export const CHAT = 'chat';
/** Maximum number of characters shown of a message; any client in the room may have sent it. */
export const MAX_TEXT = 2_000;

export interface Happening {
  /** The latest event as a sentence. */
  readonly news: string;
  /** Returns the name of a person who is in the call or was. */
  readonly nameOf: (peerId: string) => string;
}

/** Describes call events in a sentence: people who join, leave, mute, share a screen or write. */
export function useNews(client: RoomClient, peers: readonly RemotePeer[], sharing: boolean): Happening {
  const [news, setNews] = useState('');
  const [names] = useState(() => new Map<string, string>());
  for (const peer of peers) names.set(peer.id, nameOfPeer(peer));
  const before = useRef({ peers, sharing });

  useEffect(() => {
    let joined = client.state === 'connected';
    const stops = [
      client.on('connected', () => (joined = true)),
      client.on('peerJoined', (peer) => {
        // People already in the room have not just joined.
        if (joined) setNews(`${nameOfPeer(peer)} joined`);
      }),
      client.on('peerLeft', (peer) => setNews(`${nameOfPeer(peer)} left`)),
      client.on('data', ({ label, from, data }) => {
        if (label !== CHAT || typeof data !== 'string') return;
        setNews(`${names.get(from) ?? SOMEONE} says: ${data.slice(0, MAX_TEXT)}`);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [client, names]);
  useEffect(() => {
    const said = newsOf(before.current.peers, peers);
    if (said !== undefined) setNews(said);
    if (before.current.sharing !== sharing) setNews(sharing ? 'You share a screen' : 'You no longer share a screen');
    before.current = { peers, sharing };
  }, [peers, sharing]);

  return { news, nameOf: (peerId) => names.get(peerId) ?? SOMEONE };
}

const SOMEONE = 'Someone';
