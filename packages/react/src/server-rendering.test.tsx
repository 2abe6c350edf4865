import { expect, test } from '@jest/globals';
import { renderToString } from 'react-dom/server';
import { AudioRenderer } from './media.js';
import { useMessages } from './messages.js';
import { RoomProvider, usePeers, useRoom } from './room.js';

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

test('a call renders on a server without a browser or connection', () => {
  expect(renderToString(<App />)).toBe('idle<p>0<!-- --> others, <!-- -->0<!-- --> messages</p>');
});

test('a hook outside a room says what is missing', () => {
  expect(() => renderToString(<People />)).toThrow('no <RoomProvider> above this component');
});
