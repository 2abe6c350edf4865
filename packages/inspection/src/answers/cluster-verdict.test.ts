import { describe, expect, test } from '@jest/globals';
import type { LinkLine } from '../sources.js';
import { judge } from './cluster-verdict.js';

/** Builds views: in `a: b c!`, a reports that b is up and c is down. */
function views(...lines: string[]) {
  return lines.map((line) => {
    const [node = '', rest = ''] = line.split(':');
    const links = rest
      .split(' ')
      .filter(Boolean)
      .map((word): LinkLine => {
        const isTool = word.startsWith('~');
        const name = word.replace(/[~!]/g, '');
        const counts = { framesIn: 0, framesOut: 0, bytesIn: 0, bytesOut: 0, buffered: 0, dropped: 0, attempts: 0 };
        const nothing = { since: null, lastError: null, nextRetryInMs: null, cutUntil: null, dialled: null };
        const kind = isTool ? 'tool' : 'member';
        return { node: name, kind, state: word.endsWith('!') ? 'down' : 'up', ...counts, ...nothing };
      });
    return { node, links };
  });
}

describe('the verdict on a cluster', () => {
  test.each([
    ['a lone node', ['a:'], { verdict: 'whole', groups: [['a']], missing: [] }],
    [
      'a cluster in which all see all',
      ['a: b c', 'b: a c', 'c: a b'],
      { verdict: 'whole', groups: [['a', 'b', 'c']], missing: [] },
    ],
    ['a tool beside the members', ['a: b ~t', 'b: a'], { verdict: 'whole', groups: [['a', 'b']], missing: [] }],
    [
      'two unlinked members',
      ['a: b c', 'b: a c!', 'c: a b!'],
      { verdict: 'partial', groups: [['a', 'b', 'c']], missing: [['b', 'c']] },
    ],
    [
      'a link reported down by one end',
      ['a: b c', 'b: a c', 'c: a b!'],
      { verdict: 'partial', groups: [['a', 'b', 'c']], missing: [['b', 'c']] },
    ],
    [
      'two halves',
      ['a: b c! d!', 'b: a c! d!', 'c: d a! b!', 'd: c a! b!'],
      {
        verdict: 'split',
        groups: [
          ['a', 'b'],
          ['c', 'd'],
        ],
        missing: [
          ['a', 'c'],
          ['a', 'd'],
          ['b', 'c'],
          ['b', 'd'],
        ],
      },
    ],
    [
      'a member that does not answer but is seen',
      ['a: b c', 'b: a c'],
      { verdict: 'whole', groups: [['a', 'b', 'c']], missing: [] },
    ],
    [
      'a member that no one sees',
      ['a: b c!', 'b: a c!'],
      {
        verdict: 'split',
        groups: [['a', 'b'], ['c']],
        missing: [
          ['a', 'c'],
          ['b', 'c'],
        ],
      },
    ],
    [
      'a link that one end has never heard of',
      ['a: b', 'b:'],
      { verdict: 'split', groups: [['a'], ['b']], missing: [['a', 'b']] },
    ],
  ] as const)('judges %s', (_what, lines, verdict) => {
    expect(judge(views(...lines))).toEqual(verdict);
  });
});
