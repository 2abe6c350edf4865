import { RoomProvider, useRoom } from '@bloom/react';
import { CallView, type JoiningMedia, Notice, PreJoin, usePreview } from '@bloom/react/kit';
import '@bloom/react/kit.css';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

const given = new URLSearchParams(location.search).get('name') ?? '';

/** A person at the end of the preview. */
interface Joining {
  readonly name: string;
  readonly media: JoiningMedia;
}

/** A preview with devices, and then the call with what it has opened. */
function Page() {
  const [joining, setJoining] = useState<Joining | null>(null);
  const [end, setEnd] = useState<string | null>(null);
  if (joining === null) return <Entrance end={end} onJoin={setJoining} />;
  const leave = (reason: string) => {
    setEnd(reason);
    setJoining(null);
  };
  return <Call {...joining} onEnd={leave} />;
}

function Entrance({ end, onJoin }: { end: string | null; onJoin: (joining: Joining) => void }) {
  const [name, setName] = useState(given);
  const preview = usePreview();
  const join = () => {
    const media = preview.take();
    if (media !== null) onJoin({ name, media });
  };
  return (
    <main style={{ padding: '1rem' }}>
      <h1>Join the call</h1>
      {end !== null && <Notice kind="info">{end}</Notice>}
      <PreJoin preview={preview} name={name} onName={setName} onJoin={join} />
    </main>
  );
}

function Call({ name, media, onEnd }: Joining & { onEnd: (reason: string) => void }) {
  const room = useRoom(async () => {
    const answer = await fetch('/seat', { method: 'POST' });
    if (!answer.ok) throw new Error(await answer.text());
    return { ...(await answer.json()), metadata: { name } };
  });
  const { error } = room;
  if (error !== null) {
    const reason = error.code === 'LEFT' ? 'You have left the call' : error.message;
    const leave = () => {
      // A call without a seat never began, so it did not close its devices either.
      for (const track of room.client.localTracks) track.media?.stop();
      onEnd(reason);
    };
    return (
      <main style={{ padding: '1rem' }}>
        <p role="alert">{reason}</p>
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

createRoot(document.querySelector('#call')!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
