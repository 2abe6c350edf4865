import type { LocalTrack, Quality, RemoteTrack, Unavailable, Variant } from '@bloom/client';
import { type CSSProperties, type ReactElement, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { VideoTile } from '../index.js';
import { Icon } from './icons.js';
import { hueOf, initialsOf, isActive } from './people.js';

const VARIANT_NAMES: Readonly<Record<Variant, string>> = { l: 'Low', m: 'Medium', h: 'High' };
const QUALITY_NAMES: Readonly<Record<Quality, string>> = {
  good: 'good connection',
  fair: 'fair connection',
  poor: 'poor connection',
};
/** Why a person is neither seen nor heard. */
const UNAVAILABLE: Readonly<Record<Unavailable, string>> = {
  NO_CODEC: 'This browser cannot play this',
  NO_KEY: 'Encrypted with a key that you do not have',
  NOT_ENCRYPTED: 'Not encrypted, so it is not shown',
};
/** Choice that leaves the quality to the size of the tile. */
const AUTOMATIC = '';

/** The initials of somebody without a picture. */
export function Avatar({ name }: { readonly name: string }): ReactElement {
  return (
    <div className="bloom-avatar" style={{ '--bloom-hue': hueOf(name) } as CSSProperties} aria-hidden="true">
      <span>{initialsOf(name)}</span>
    </div>
  );
}

/** Props of `Tile`. */
export interface TileProps {
  readonly name: string;
  /** A picture of the person or their screen; null for somebody without one. */
  readonly track: RemoteTrack | LocalTrack | null;
  /** Shows the name instead of the picture, for example while the own camera is off. */
  readonly off?: boolean;
  /** True for this participant. */
  readonly own?: boolean;
  /** True if a mark shows that the person is muted. */
  readonly muted?: boolean;
  readonly speaking?: boolean;
  /** Why nothing is seen or heard of the person; a sentence says so. */
  readonly unavailable?: Unavailable | null;
  /** How well media passes; a mark shows what is not good. */
  readonly quality?: Quality | null;
  /** True for a shared screen, which is never cropped. */
  readonly screen?: boolean;
  /** True for the large tile of a spotlight. */
  readonly front?: boolean;
  readonly pinned?: boolean;
  /** Pins the tile, or unpins it. Without it there is no such choice. */
  readonly onPin?: (() => void) | undefined;
  readonly className?: string | undefined;
  /** Place of the tile, as `useTileLayout` gives it. */
  readonly style?: CSSProperties | undefined;
}

/** A person or a shared screen: picture or initials, name, and marks for mute, voice and connection. */
export function Tile({ name, track, off = false, own = false, quality = null, ...props }: TileProps): ReactElement {
  const {
    muted = false,
    speaking = false,
    unavailable = null,
    screen = false,
    front = false,
    pinned = false,
    onPin,
    className,
    style,
  } = props;
  const [chosen, setChosen] = useState<Variant | undefined>(undefined);
  const remote = track !== null && 'peerId' in track ? track : null;
  const shown = track !== null && !off && unavailable === null && (remote === null || isActive(remote));
  return (
    <figure
      className={`bloom-tile ${className ?? ''}`}
      aria-label={name}
      style={style}
      data-own={own || undefined}
      data-screen={screen || undefined}
      data-front={front || undefined}
      data-speaking={speaking || undefined}
    >
      {track !== null && (
        <VideoTile track={track} variant={chosen} aria-label={own ? 'Your own picture' : `Picture of ${name}`} />
      )}
      {!shown && <Avatar name={name} />}
      {unavailable !== null && <p className="bloom-unavailable">{UNAVAILABLE[unavailable]}</p>}
      <figcaption>
        <span className="bloom-name" title={name}>
          {name}
        </span>
        {muted && <Mark kind="muted" label="muted" />}
        {quality !== null && quality !== 'good' && <Mark kind={quality} label={QUALITY_NAMES[quality]} />}
        {pinned && <Mark kind="pinned" label="pinned" />}
      </figcaption>
      {(onPin !== undefined || (shown && remote !== null && remote.variants.length > 1)) && (
        <TileMenu name={name} quality={quality}>
          {onPin !== undefined && (
            <button type="button" className="bloom-button" aria-pressed={pinned} onClick={onPin}>
              {pinned ? 'Unpin' : 'Pin'}
            </button>
          )}
          {shown && remote !== null && remote.variants.length > 1 && (
            <label className="bloom-field">
              <span>Quality</span>
              <select
                aria-label={`Quality of the picture of ${name}`}
                value={chosen ?? AUTOMATIC}
                onChange={({ target: { value } }) => setChosen(value === AUTOMATIC ? undefined : (value as Variant))}
              >
                <option value={AUTOMATIC}>Automatic</option>
                {remote.variants.map((variant) => (
                  <option key={variant} value={variant}>
                    {VARIANT_NAMES[variant]}
                  </option>
                ))}
              </select>
            </label>
          )}
        </TileMenu>
      )}
    </figure>
  );
}

interface MarkProps {
  readonly kind: 'muted' | 'pinned' | Quality;
  readonly label: string;
}

function Mark({ kind, label }: MarkProps): ReactElement {
  const icon = kind === 'muted' ? 'microphone' : kind === 'pinned' ? 'pin' : 'signal';
  return (
    <span className="bloom-mark" data-kind={kind} role="img" aria-label={label} title={label}>
      <Icon name={icon} off={kind === 'muted'} />
    </span>
  );
}

interface TileMenuProps {
  readonly name: string;
  readonly quality: Quality | null;
  readonly children: ReactNode;
}

/** Space between the menu and the edge of the window, in pixels. */
const MARGIN = 8;

/** A menu above all tiles, however small its own is. The browser closes it with Escape and a press beside it. */
function TileMenu({ name, quality, children }: TileMenuProps): ReactElement {
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const id = useId();
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const [opener, element] = [button.current, menu.current];
    if (opener === null || element === null) return undefined;
    // React 18 does not know the attributes. The browser keeps the button and its menu in step.
    element.popover = 'auto';
    opener.popoverTargetElement = element;
    const toggled = (event: Event): void => {
      const opens = (event as ToggleEvent).newState === 'open';
      setOpen(opens);
      if (opens) place(element, opener);
    };
    element.addEventListener('toggle', toggled);
    return () => element.removeEventListener('toggle', toggled);
  }, []);
  return (
    <>
      <button
        ref={button}
        type="button"
        className="bloom-button bloom-menu-button"
        aria-label={`Options of ${name}`}
        aria-expanded={open}
        aria-controls={id}
      >
        <Icon name="more" />
      </button>
      <div ref={menu} id={id} className="bloom-menu" role="group" aria-label={`Options of ${name}`}>
        {children}
        {quality !== null && <p className="bloom-hint">{QUALITY_NAMES[quality]}</p>}
      </div>
    </>
  );
}

/** Places the menu below its button, or above it, and inside the window. */
function place(menu: HTMLElement, button: HTMLElement): void {
  const { left, right, top, bottom } = button.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = bottom + MARGIN + height <= innerHeight;
  menu.style.left = `${Math.max(MARGIN, Math.min(right - width, innerWidth - width - MARGIN, left))}px`;
  menu.style.top = `${Math.max(MARGIN, below ? bottom + MARGIN : top - MARGIN - height)}px`;
}
