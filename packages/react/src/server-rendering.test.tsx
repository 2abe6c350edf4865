import { expect, test } from '@jest/globals';
import { renderToString } from 'react-dom/server';
import { AudioRenderer, VideoTile } from './media.js';
import { useMessages } from './messages.js';
import { RoomProvider, useMediaState, usePeers, useRoom } from './room.js';

function People() {
  const { messages } = useMessages('chat');
  return (
    <p>
      {usePeers().length} others, {messages.length} messages
    </p>
  );
}

function App() {
  const room = useRoom({ url: 'media.example', token: 'secret' });
  return (
    <RoomProvider room={room}>
      {room.state}
      <People />
      <AudioRenderer />
    </RoomProvider>
  );
}

test('renders a call on a server without a browser or connection', () => {
  expect(renderToString(<App />)).toBe('idle<p>0<!-- --> others, <!-- -->0<!-- --> messages</p>');
});

function Tile({ change }: { readonly change: { muted?: boolean; stalled?: boolean } }) {
  const state = {
    metadata: null,
    variants: [],
    variant: null,
    speaking: false,
    muted: false,
    stalled: false,
    unavailable: null,
    encrypted: false,
  };
  const track = { id: 't', peerId: 'ann', kind: 'video' as const, media: null, ...state, ...change };
  return (
    <RoomProvider room={useRoom(null)}>
      <VideoTile track={track} />
    </RoomProvider>
  );
}

test.each([
  ['visible', {}],
  ['invisible', { muted: true }],
  ['invisible', { stalled: true }],
])('makes a tile %s, so that a name shows instead of the last picture, if its track is %p', (visibility, change) => {
  const html = renderToString(<Tile change={change} />);
  expect(html.includes('visibility:hidden')).toBe(visibility === 'invisible');
});

test('reports the state of the media as idle before there is a call', () => {
  const State = () => useMediaState().state;
  const Idle = () => (
    <RoomProvider room={useRoom(null)}>
      <State />
    </RoomProvider>
  );
  expect(renderToString(<Idle />)).toBe('idle');
});

test('says what is missing when a hook is used outside a room', () => {
  expect(() => renderToString(<People />)).toThrow('no <RoomProvider> above this component');
});
