const TICK_MS = 2_000;
/** A tick that is this late means that the machine slept, or that the page was frozen. */
const SLEPT_MS = 10_000;

/** What a page does when its connections may have died unnoticed. */
export interface WakeUpHooks {
  /**
   * The path to the server may have changed: after sleep, or when the network comes back. The slow timers of a page that is hidden
   * look like sleep.
   */
  suspect(): void;
  /** The page is on the screen again. Its timers may have been slowed down meanwhile. */
  shown(): void;
}

/** Watches for sleep, other networks and the return of a page to the screen, until the returned function is called. */
export function watchForWakeUp({ suspect, shown }: WakeUpHooks): () => void {
  let last = Date.now();
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - last > SLEPT_MS) suspect();
    last = now;
  }, TICK_MS);
  const network = (navigator as { connection?: EventTarget }).connection;
  const page = globalThis.document as Document | undefined;
  const changed = (): void => {
    if (page?.visibilityState === 'visible') shown();
  };
  page?.addEventListener('visibilitychange', changed);
  globalThis.addEventListener?.('online', suspect);
  network?.addEventListener?.('change', suspect);
  return () => {
    clearInterval(timer);
    page?.removeEventListener('visibilitychange', changed);
    globalThis.removeEventListener?.('online', suspect);
    network?.removeEventListener?.('change', suspect);
  };
}
