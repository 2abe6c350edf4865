// Ticks in a worker: a page's timers slow down to one per second when its tab is in the background.
const FPS = 15;

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker's port to its page has no origin
setInterval(() => self.postMessage('tick'), 1000 / FPS);
