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

const slash = <path d="M3 3l18 18" />;

export const MicrophoneIcon = ({ off = false }: { readonly off?: boolean }) => (
  <Icon>
    <rect x="9" y="3" width="6" height="11" rx="3" />
    <path d="M5 11a7 7 0 0 0 14 0M12 18v3" />
    {off && slash}
  </Icon>
);

export const CameraIcon = ({ off = false }: { readonly off?: boolean }) => (
  <Icon>
    <rect x="3" y="6" width="12" height="12" rx="2.5" />
    <path d="M15 10.5l6-3.5v10l-6-3.5" />
    {off && slash}
  </Icon>
);

export const LeaveIcon = () => (
  <Icon>
    <path d="M10 4H6a2 2 0 0 0-2 2v12a2 2 0 0 0 2 2h4M15 8l4 4-4 4M19 12H9" />
  </Icon>
);

export const LinkIcon = () => (
  <Icon>
    <path d="M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7L12 7M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7L12 17" />
  </Icon>
);

export const ScreenIcon = ({ off = false }: { readonly off?: boolean }) => (
  <Icon>
    <rect x="3" y="4" width="18" height="13" rx="2" />
    <path d="M8 21h8M12 17v4" />
    {off && slash}
  </Icon>
);

export const ChatIcon = () => (
  <Icon>
    <path d="M4 5h16v11H10l-4 4v-4H4z" />
  </Icon>
);

export const SpeakerIcon = () => (
  <Icon>
    <rect x="3" y="4" width="18" height="11" rx="2" />
    <path d="M4 20h4M10 20h4M16 20h4" />
  </Icon>
);

export const GearIcon = () => (
  <Icon>
    <circle cx="12" cy="12" r="3.2" />
    <path d="M12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.2 2.2M16.2 16.2l2.2 2.2M18.4 5.6l-2.2 2.2M7.8 16.2l-2.2 2.2" />
  </Icon>
);

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
