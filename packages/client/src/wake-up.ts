const TICK_MS = 2_000;
/** A tick that is this late means that the machine slept, or that the page was frozen. */
const SLEPT_MS = 10_000;

/** Calls `suspect` when the path to the server may have changed: after sleep, or when the network comes back. */
export function watchForWakeUp(suspect: () => void): () => void {
  let last = Date.now();
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - last > SLEPT_MS) suspect();
    last = now;
  }, TICK_MS);
  const network = (navigator as { connection?: EventTarget }).connection;
  globalThis.addEventListener?.('online', suspect);
  network?.addEventListener?.('change', suspect);
  return () => {
    clearInterval(timer);
    globalThis.removeEventListener?.('online', suspect);
    network?.removeEventListener?.('change', suspect);
  };
}
