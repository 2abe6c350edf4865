// Small parts shared by several views.
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Problem } from '../problem.js';
import { useLive } from '../session.js';
import { Notice } from './notice.js';
import type { Action } from './use-action.js';

export interface PageProps {
  readonly title: string;
  /** Content beside the title, such as a count or a state. */
  readonly aside?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Fills the window with lists that scroll separately. */
  readonly full?: boolean;
}

/** The frame of a view. The title takes the focus, so that screen readers start there. */
export function Page({ title, aside, actions, children, full = false }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { problem } = useLive();
  useEffect(() => {
    document.title = `${title} – Bloom`;
    heading.current?.focus();
  }, [title]);
  return (
    <main className={full ? 'page full' : 'page'}>
      <header className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {aside !== undefined && <span className="hint">{aside}</span>}
        {actions !== undefined && <div className="page-actions">{actions}</div>}
      </header>
      {problem !== null && (
        <Notice kind="problem" title={problem.title}>
          {problem.message} This page resumes as soon as the server answers.
        </Notice>
      )}
      {children}
    </main>
  );
}

/** Placeholder for the first answer. Without an answer, the page says why. */
export function Loading() {
  const { problem } = useLive();
  return problem === null && <p className="hint">Loading …</p>;
}

/** Shows why a request was not answered. If no request is, the page itself says so. */
export function Unanswered({ problem }: { readonly problem: Problem | null }) {
  return (
    problem !== null &&
    problem.code !== 'server-unreachable' && (
      <Notice kind="problem" title={problem.title}>
        {problem.message}
      </Notice>
    )
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Shows why the last action failed. */
export function Failure({ action: { problem, dismiss } }: { readonly action: Action }) {
  const box = useRef<HTMLDivElement>(null);
  // The button is at the end of a form that may be longer than the window.
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' });
  }, [problem]);
  return (
    problem && (
      <div ref={box}>
        <Notice kind="problem" title={problem.title} onDismiss={dismiss}>
          {problem.message}
        </Notice>
      </div>
    )
  );
}

export function Badge({ tone, children }: { readonly tone?: 'good' | 'warn' | 'bad'; readonly children: ReactNode }) {
  return <span className={tone === undefined ? 'badge' : `badge ${tone}`}>{children}</span>;
}

/** A value to copy into another program. */
export function Copy({ label, value }: { readonly label: string; readonly value: string }) {
  const [copied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    // Insecure pages have no clipboard: select the field for manual copying.
    await navigator.clipboard?.writeText(value).then(
      () => setCopied(true),
      () => undefined,
    );
  }
  return (
    <div className="field">
      <label>
        <span>{label}</span>
        <input readOnly value={value} onFocus={({ currentTarget }) => currentTarget.select()} />
      </label>
      <button type="button" onClick={() => void copy()}>
        Copy <span className="unseen">{label}</span>
      </button>
      <span role="status" className="hint">
        {copied ? 'Copied' : ''}
      </span>
    </div>
  );
}

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A modal dialog. It focuses its first field, closes on Escape, and returns the focus to where it was. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>('form :is(input, select)')?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      <div className="dialog-head">
        <h2>{title}</h2>
        <button type="button" className="quiet" onClick={onClose}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}
