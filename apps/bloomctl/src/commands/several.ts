import type { AnswerOf, AskOptions, RequestFields, RequestKind } from '@bloom/inspection';
import type { Context } from '../context.js';
import type { Screen } from '../text/style.js';
import { unreachableLines } from '../views/media.js';

export interface SeveralNodes<K extends RequestKind> {
  readonly kind: K;
  readonly fields: RequestFields<K>;
  readonly nodes: readonly string[];
  readonly options?: AskOptions;
  view(answers: readonly (AnswerOf<K> & { node: string })[], screen: Screen): readonly string[];
}

/** Asks several nodes and prints their answers, then the nodes that did not answer. @throws Failure when none did */
export async function showSeveral<K extends RequestKind>(
  context: Context,
  { kind, fields, nodes, options, view }: SeveralNodes<K>,
): Promise<void> {
  const { answers, unreachable } = await context.askAll(kind, fields, { ...options, nodes });
  const { asked } = await context.asker();
  const found = answers.map(({ node, answer }) => ({ node, ...answer }));
  context.output.answer(kind, { asked, unreachable, nodes: found }, (screen) => [
    ...view(found, screen),
    ...unreachableLines([...unreachable], screen),
  ]);
}
