// Ticks in a worker: the timers of a page slow down to one per second once its tab is in the background.
const FPS = 15;

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker's port to its page has no origin
setInterval(() => self.postMessage('tick'), 1000 / FPS);
