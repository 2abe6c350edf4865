import { expect, test } from '@jest/globals';
import { withRanking } from './search.mjs';

const TYPEDOC = 'let a=i.split(" ").map(c=>c.length?`*${c}*`:"").join(" ");s=r.index.search(a)';

/** Returns the scores of the pages that lunr finds, of which each has these terms. */
function scores(text: string, found: readonly string[][]): number[] {
  const index = {
    query: (ask: (query: { term: () => void }) => void) => {
      ask({ term: () => undefined });
      return found.map((terms) => ({
        score: 1,
        matchData: { metadata: Object.fromEntries(terms.map((term) => [term, {}])) },
      }));
    },
  };
  // oxlint-disable-next-line typescript/no-implied-eval
  const search = new Function('r', 'i', `let s;${withRanking(TYPEDOC)};return s`) as (
    r: { index: typeof index },
    i: string,
  ) => { score: number }[];

  return search({ index }, text).map(({ score }) => score);
}

test('ranks pages by how many of the telling words they have', () => {
  expect(scores('How do I mute people?', [['mute', 'people'], ['muting'], ['how']])).toEqual([1, 0.25, 0]);
});

test('finds nothing for a text without words', () => {
  expect(scores('?', [['mute']])).toEqual([]);
});
