import type { ReactNode } from 'react';
import { Logo } from './icons.js';
import { Notice } from './notice.js';

export interface EntrancePageProps {
  readonly title: string;
  /** One line below the title. */
  readonly text: string;
  readonly problem: { readonly title: string; readonly message: string } | null;
  readonly children: ReactNode;
}

/** What people see before they are let in: the name of the page, why they are not in, and a form. */
export function EntrancePage({ title, text, problem, children }: EntrancePageProps) {
  return (
    <main className="sign-in">
      <div className="brand">
        <Logo />
        <div>
          <h1>{title}</h1>
          <p>{text}</p>
        </div>
      </div>
      {problem !== null && (
        <Notice kind="problem" title={problem.title}>
          {problem.message}
        </Notice>
      )}
      {children}
    </main>
  );
}
