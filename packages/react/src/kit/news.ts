import { useEffect, useRef, useState } from 'react';
import { usePeers, useRoomClient } from '../index.js';
import { nameOfPeer, newsOf } from './people.js';

/** Maximum number of characters that are announced of a message. */
const MAX_TEXT = 200;

/** Returns the latest event as a sentence: people who join, leave, mute, share a screen or write in the chat. */
export function useNews(sharing: boolean, label = 'chat'): string {
  const client = useRoomClient();
  const peers = usePeers();
  const [news, setNews] = useState('');
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
      client.on('data', (message) => {
        if (message.label !== label || typeof message.data !== 'string') return;
        const writer = client.peers.find(({ id }) => id === message.from);
        setNews(`${writer === undefined ? 'Someone' : nameOfPeer(writer)} says: ${message.data.slice(0, MAX_TEXT)}`);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [client, label]);
  useEffect(() => {
    const said = newsOf(before.current.peers, peers);
    if (said !== undefined) setNews(said);
    if (before.current.sharing !== sharing) setNews(sharing ? 'You share a screen' : 'You no longer share a screen');
    before.current = { peers, sharing };
  }, [peers, sharing]);

  return news;
}
