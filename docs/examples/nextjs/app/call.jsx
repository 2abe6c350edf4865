'use client';
import { AudioRenderer, RoomProvider, useLocalMedia, usePeers, useRoom, VideoTile } from '@bloom/react';
import { useState } from 'react';
import { takeSeat } from './actions.js';

export function Call() {
  const [seat, setSeat] = useState(null);
  const room = useRoom(seat);
  if (seat === null) {
    return (
      <form action={async (form) => setSeat(await takeSeat(form.get('name')))}>
        <label>
          Your name <input name="name" required />
        </label>
        <button>Join</button>
      </form>
    );
  }
  return (
    <RoomProvider room={room}>
      <p role="status">{room.error?.message ?? room.state}</p>
      <Camera />
      <People />
      <AudioRenderer />
    </RoomProvider>
  );
}

function Camera() {
  const camera = useLocalMedia('camera');
  return (
    <>
      <button onClick={() => camera.toggle()}>{camera.on ? 'Stop camera' : 'Start camera'}</button>
      <p role="alert">{camera.error?.message}</p>
    </>
  );
}

function People() {
  return usePeers().map(({ id, metadata, tracks }) => (
    <figure key={id}>
      {tracks
        .filter(({ media }) => media?.kind === 'video')
        .map((track) => (
          <VideoTile key={track.id} track={track} />
        ))}
      <figcaption>{metadata?.server?.name}</figcaption>
    </figure>
  ));
}
