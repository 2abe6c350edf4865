'use client';
import { AudioRenderer, RoomProvider, useLocalMedia, useMediaState, usePeers, useRoom, VideoTile } from '@bloom/react';
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
      <Status room={room} />
      <Camera />
      <People />
      <AudioRenderer />
    </RoomProvider>
  );
}

function Status({ room }) {
  const media = useMediaState();
  const state = room.state === 'connected' && media.state !== 'idle' ? media.state : room.state;
  return <p role="status">{room.error?.message ?? media.reason ?? state}</p>;
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
        .filter(({ kind }) => kind === 'video')
        .map((track) => (
          <VideoTile key={track.id} track={track} />
        ))}
      <figcaption>{metadata?.server?.name}</figcaption>
    </figure>
  ));
}
