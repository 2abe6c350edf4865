import type { ReactNode } from 'react';

export interface NoticeProps {
  readonly kind: 'problem' | 'info';
  readonly title?: string;
  readonly children: ReactNode;
  readonly onDismiss?: () => void;
}

/** A message to the user. A problem interrupts a screen reader; a remark waits. */
export function Notice({ kind, title, children, onDismiss }: NoticeProps) {
  return (
    <div className={`notice ${kind}`} role={kind === 'problem' ? 'alert' : 'status'}>
      <p>
        {title && <strong>{title}. </strong>}
        {children}
      </p>
      {onDismiss && (
        <button type="button" className="quiet" onClick={onDismiss}>
          Dismiss
        </button>
      )}
    </div>
  );
}
