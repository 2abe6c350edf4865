import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
import './styles/base.css';
import './styles/shell.css';
import './styles/data.css';
import './styles/call.css';

const root = document.querySelector('#root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App base={new URL('.', location.href).href} />
    </StrictMode>,
  );
}
