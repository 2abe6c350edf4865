// What every page starts with.
import { type ReactNode, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '@bloom/react/kit.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/data.css';
import './styles/call.css';
import './styles/check.css';

/**
 * Shows a page in the element `#root`. `base`: address of its folder, beside which the API is.
 */
export function showPage(content: (base: string) => ReactNode): void {
  const root = document.querySelector('#root');
  if (root === null) return;
  createRoot(root).render(<StrictMode>{content(new URL('.', location.href).href)}</StrictMode>);
}
