import { RoomProvider, useRoom } from '@bloom/react';
import { CallView, Notice, PreJoin, usePreview } from '@bloom/react/kit';
import '@bloom/react/kit.css';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

const given = new URLSearchParams(location.search).get('name') ?? '';

/** A preview with devices, and then the call with what it has opened. */
function Page() {
  const [joining, setJoining] = useState(null);
  const [end, setEnd] = useState(null);
  if (joining === null) return <Entrance end={end} onJoin={setJoining} />;
  const leave = (reason) => {
    setEnd(reason);
    setJoining(null);
  };
  return <Call {...joining} onEnd={leave} />;
}

function Entrance({ end, onJoin }) {
  const [name, setName] = useState(given);
  const preview = usePreview();
  return (
    <main style={{ padding: '1rem' }}>
      <h1>Join the call</h1>
      {end !== null && <Notice kind="info">{end}</Notice>}
      <PreJoin preview={preview} name={name} onName={setName} onJoin={() => onJoin({ name, media: preview.take() })} />
    </main>
  );
}

function Call({ name, media, onEnd }) {
  const room = useRoom(async () => {
    const answer = await fetch('/seat', { method: 'POST' });
    if (!answer.ok) throw new Error(await answer.text());
    return { ...(await answer.json()), metadata: { name } };
  });
  if (room.error !== null) {
    const leave = () => {
      // A call without a seat never began, so it did not close its devices either.
      for (const track of room.client.localTracks) track.media?.stop();
      onEnd(room.error.message);
    };
    return (
      <main style={{ padding: '1rem' }}>
        <p role="alert">{room.error.message}</p>
        <button onClick={leave}>Back</button>
      </main>
    );
  }
  return (
    <RoomProvider room={room}>
      <CallView title="react-call" name={name} media={media} />
    </RoomProvider>
  );
}

createRoot(document.getElementById('call')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
