import { AudioRenderer, RoomProvider, useLocalMedia, usePeers, useRoom, VideoTile } from '@bloom/react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

function Call({ name }) {
  const room = useRoom(async () => {
    const answer = await fetch('/seat', { method: 'POST' });
    return { ...(await answer.json()), metadata: { name } };
  });
  return (
    <RoomProvider room={room}>
      <p role="status">{room.error?.message ?? room.state}</p>
      <Controls />
      <People />
      <AudioRenderer />
    </RoomProvider>
  );
}

function Controls() {
  const camera = useLocalMedia('camera');
  const microphone = useLocalMedia('microphone');
  return (
    <>
      <button onClick={() => camera.toggle()}>{camera.on ? 'Stop camera' : 'Start camera'}</button>
      <button onClick={() => microphone.toggle()}>{microphone.on ? 'Mute' : 'Unmute'}</button>
      <p role="alert">{camera.error?.message ?? microphone.error?.message}</p>
      {/* Below the buttons, which would move from under the pointer when the picture appears. */}
      {camera.on && <VideoTile track={camera.track} aria-label="You" />}
    </>
  );
}

function People() {
  return usePeers().map((peer) => (
    <figure key={peer.id}>
      {peer.tracks
        .filter((track) => track.media?.kind === 'video')
        .map((track) => (
          <VideoTile key={track.id} track={track} />
        ))}
      <figcaption>{peer.metadata?.name}</figcaption>
    </figure>
  ));
}

const name = new URLSearchParams(location.search).get('name') ?? 'somebody';
createRoot(document.getElementById('call')).render(
  <StrictMode>
    <Call name={name} />
  </StrictMode>,
);
