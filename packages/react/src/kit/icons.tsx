// Inline icons in the colour of the surrounding text, hidden from screen readers: their buttons have names.
import type { ComponentProps, ReactElement, ReactNode } from 'react';

const SLASH = 'M3 3l18 18';

/** Outlines in a square of 24. */
const PATHS = {
  microphone: 'M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM5 11a7 7 0 0 0 14 0M12 18v3',
  camera:
    'M5.5 6h7A2.5 2.5 0 0 1 15 8.5v7a2.5 2.5 0 0 1-2.5 2.5h-7A2.5 2.5 0 0 1 3 15.5v-7A2.5 2.5 0 0 1 5.5 6zM15 10.5l6-3.5v10l-6-3.5',
  screen: 'M5 4h14a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2zM8 21h8M12 17v4',
  chat: 'M4 5h16v11H10l-4 4v-4H4z',
  devices: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5',
  spotlight: 'M3 4h18v11H3zM4 20h4M10 20h4M16 20h4',
  grid: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7L12 7M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7L12 17',
  leave: 'M10 4H6a2 2 0 0 0-2 2v12a2 2 0 0 0 2 2h4M15 8l4 4-4 4M19 12H9',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  pin: 'M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v6',
  record: 'M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16zM12 10a2 2 0 1 0 0 4a2 2 0 1 0 0-4z',
  signal: 'M5 18v-3M10 18v-6M15 18V9M20 18V6',
} as const;

/** Name of an icon. */
export type IconName = keyof typeof PATHS;

/** Props of `Icon`. */
export interface IconProps {
  readonly name: IconName;
  /** Strikes it through. */
  readonly off?: boolean;
}

/** An icon of the kit. */
export function Icon({ name, off = false }: IconProps): ReactElement {
  return (
    <svg
      className="bloom-icon"
      viewBox="0 0 24 24"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 3 : 1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
      {off && <path d={SLASH} />}
    </svg>
  );
}

/** Props of `IconButton`: those of `<button>`, an icon, and a text that small screens show to screen readers only. */
export interface IconButtonProps extends Omit<ComponentProps<'button'>, 'children' | 'name'> {
  readonly icon: IconName;
  /** Strikes the icon through and marks the button. */
  readonly off?: boolean;
  readonly text: string;
  readonly children?: ReactNode;
}

/** A button with an icon and a text. */
export function IconButton({ icon, off = false, text, children, ...props }: IconButtonProps): ReactElement {
  return (
    <button type="button" className="bloom-button" data-off={off || undefined} title={text} {...props}>
      <Icon name={icon} off={off} />
      <span className="bloom-text">{text}</span>
      {children}
    </button>
  );
}
