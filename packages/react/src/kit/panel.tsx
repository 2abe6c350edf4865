import { type ReactElement, type ReactNode, useEffect } from 'react';

/** Props of `Panel`. */
export interface PanelProps {
  readonly title: string;
  /** Called by the button and the Escape key. */
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The frame of what is shown beside the tiles. Escape closes it, and the focus returns to where it was. */
export function Panel({ title, onClose, children }: PanelProps): ReactElement {
  useEffect(() => {
    const before = document.activeElement;
    return () => {
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- its button does the same
    <aside
      className="bloom-panel"
      aria-label={title}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
      }}
    >
      <div className="bloom-panel-head">
        <h2>{title}</h2>
        <button type="button" className="bloom-button" onClick={onClose}>
          Close
        </button>
      </div>
      {children}
    </aside>
  );
}
