import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
import { watchedRoom } from './watch/watched-room.js';
import { Watch } from './watch/watch.js';
import './styles.css';

const watched = watchedRoom(location.hash);
const base = new URL('.', location.href).href;
// A link opened in this tab changes the hash only.
addEventListener('hashchange', () => {
  if (watchedRoom(location.hash) !== watched) location.reload();
});

const root = document.querySelector('#root');
if (root) {
  createRoot(root).render(
    <StrictMode>{watched === undefined ? <App /> : <Watch base={base} roomId={watched} />}</StrictMode>,
  );
}
