const TICK_MS = 2_000;
/** A tick this late means that the machine slept or the page was frozen. */
const SLEPT_MS = 10_000;

/** Reactions of a page whose connections may have died unnoticed. */
export interface WakeUpHooks {
  /**
   * Called when the path to the server may have changed: after sleep, or when the network returns. The slow timers of a
   * hidden page look like sleep.
   */
  suspect(): void;
  /** Called when the page is visible again. Its timers may have been slowed down. */
  shown(): void;
}

/** Watches for sleep, network changes and the page's return to the screen, until the returned function is called. */
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
