import { VARIANTS, type Variant } from './signaling.js';

/** Factor by which a variant is smaller than the camera's picture. */
export const SCALE: Readonly<Record<Variant, number>> = { l: 4, m: 2, h: 1 };
/** Assumed height of a camera before its first picture. */
const USUAL_HEIGHT = 720;
/** A picture stretched by a quarter still looks sharp. */
const STRETCH = 1.25;

export interface Shown {
  /** Height of the picture in its element, in device pixels; 0 while it is off the screen. */
  readonly height: number;
  /** Height of the last received picture, and its variant. */
  readonly received?: { readonly height: number; readonly variant: Variant };
}

/** Returns the smallest of `variants` that looks sharp in the largest element. */
export function variantFor(shown: readonly Shown[], variants: readonly Variant[]): Variant | undefined {
  const wanted = Math.max(0, ...shown.map(({ height }) => height));
  const received = shown.find((one) => one.received !== undefined && one.received.height > 0)?.received;
  const full = received === undefined ? USUAL_HEIGHT : received.height * SCALE[received.variant];
  const ordered = VARIANTS.filter((variant) => variants.includes(variant));
  return ordered.find((variant) => (full / SCALE[variant]) * STRETCH >= wanted) ?? ordered.at(-1);
}

/** A picture in a separate window is visible wherever its element is. */
const WINDOW_EVENTS = ['enterpictureinpicture', 'leavepictureinpicture'];

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Returns the height of a picture with this shape in an element. With `cover`, it fills the element and is cropped. */
export function shownHeight(element: Size, picture: Size, cover: boolean): number {
  const byWidth = element.width * (picture.height / picture.width);
  return cover ? Math.max(element.height, byWidth) : Math.min(element.height, byWidth);
}

/** Watches an element's size. Calls `changed` with it in device pixels; it is empty while the element is off screen. */
export function watchSize(element: Element, changed: (size: Size) => void): () => void {
  let onScreen = true;
  let size: Size = { width: element.clientWidth, height: element.clientHeight };
  const report = (): void => {
    const visible = onScreen || document.pictureInPictureElement === element;
    const scale = visible ? devicePixelRatio : 0;
    changed({ width: size.width * scale, height: size.height * scale });
  };
  const sizes = new ResizeObserver(([entry]) => {
    size = entry?.contentRect ?? size;
    report();
  });
  const visibility = new IntersectionObserver((entries) => {
    onScreen = entries.at(-1)?.isIntersecting ?? onScreen;
    report();
  });
  sizes.observe(element);
  visibility.observe(element);
  for (const event of WINDOW_EVENTS) element.addEventListener(event, report);
  return () => {
    sizes.disconnect();
    visibility.disconnect();
    for (const event of WINDOW_EVENTS) element.removeEventListener(event, report);
  };
}
