import type { Writable } from 'node:stream';

/** Returns a function that writes frames, those of one turn of the event loop with a single system call. */
export function gatheredWrites(socket: Writable): (frame: Uint8Array) => void {
  let isCorked = false;
  const release = (): void => {
    isCorked = false;
    socket.uncork();
  };

  return (frame) => {
    if (!isCorked) {
      isCorked = true;
      socket.cork();
      process.nextTick(release);
    }
    socket.write(frame);
  };
}
