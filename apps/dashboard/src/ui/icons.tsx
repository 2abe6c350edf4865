// Inline icons in the colour of the surrounding text, hidden from screen readers: their buttons have labels.
import type { ReactNode } from 'react';

function Icon({ children }: { readonly children: ReactNode }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const MenuIcon = () => (
  <Icon>
    <path d="M4 7h16M4 12h16M4 17h16" />
  </Icon>
);

export const Logo = () => (
  <svg className="logo" viewBox="0 0 32 32" aria-hidden="true">
    <path d="M4 16a12 12 0 0 1 24 0c0 2-2 3-4 2s-3-1-4 0-3 1-4 0-3-1-4 0-3 1-4 0-4 0-4-2z" fill="var(--accent)" />
    <path d="M10 20v6M16 20v9M22 20v6" stroke="var(--accent-2)" strokeWidth="2.4" strokeLinecap="round" />
  </svg>
);
