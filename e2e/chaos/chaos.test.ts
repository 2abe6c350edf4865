import { describe, expect, test } from '@jest/globals';
import type { LabNode } from '../cluster/lab-cluster.js';
import { describeWith } from '../harness/needs.js';
import type { Session } from './listeners.js';
import { checkStories, type KnownRoom } from './rooms.js';
import { runChaos } from './run.js';
import { areMostCalm, Subject } from './subject.js';
import { Timeline } from './timeline.js';

const event = (type: string, peerId?: string): string =>
  JSON.stringify({ type, roomId: 'r', ...(peerId === undefined ? {} : { peerId }) });

const STORY = [
  event('roomCreated'),
  event('peerConnected', 'ann'),
  event('peerDisconnected', 'ann'),
  event('roomDeleted'),
];

/** Returns what the rules say of a room of `a` that lived from 1 s to 5 s, as `a` and `b` told it. */
function verdict(told: { a: string[]; b?: string[]; webhooks?: string[] }, trouble?: 'a' | 'b'): readonly string[] {
  const timeline = new Timeline(() => undefined);
  const [a, b] = ['a', 'b'].map((name) => new Subject({} as LabNode, name)) as [Subject, Subject];
  if (trouble !== undefined) (trouble === 'a' ? a : b).trouble(2_000)(3_000);
  const room: KnownRoom = {
    id: 'r',
    owner: a,
    process: 0,
    sinceMs: 1_000,
    hasWebhook: told.webhooks !== undefined,
    isHeld: false,
    deletedMs: 4_900,
    endedMs: 5_000,
  };
  const session = (subject: Subject, heard: string[]): Session => ({
    subject,
    sinceMs: 0,
    untilMs: Infinity,
    heard: new Map([['r', heard]]),
  });
  const sessions = [session(a, told.a), session(b, told.b ?? told.a)];
  checkStories([room], { sessions, webhooks: new Map([['r', told.webhooks ?? []]]) }, timeline);
  return timeline.violations;
}

describe('the rules of chaos', () => {
  test('accept a story that everybody was told in full', () => {
    expect(verdict({ a: STORY, webhooks: STORY })).toEqual([]);
  });

  test.each([
    ['an event twice', { a: STORY, b: [...STORY.slice(0, 2), ...STORY.slice(1)] }],
    ['events in another order', { a: STORY, b: [STORY[0]!, STORY[2]!, STORY[1]!, STORY[3]!] }],
    ['a missing event', { a: STORY, b: STORY.slice(0, 3) }],
    ['a webhook that is missing', { a: STORY, webhooks: STORY.slice(1) }],
    ['a connection that happens twice', { a: [STORY[0]!, STORY[1]!, STORY[1]!, STORY[2]!, STORY[3]!] }],
    ['a room that begins without a word', { a: STORY.slice(1) }],
    ['an event after the end', { a: [...STORY, STORY[1]!] }],
    ['a room that ends with somebody in it', { a: [STORY[0]!, STORY[1]!, STORY[3]!] }],
  ])('refuse %s', (_what, told) => {
    expect(verdict(told)).toHaveLength(1);
  });

  test('excuse a subscriber whose node was troubled', () => {
    expect(verdict({ a: STORY, b: [] }, 'b')).toEqual([]);
  });

  test('excuse an owner that was troubled', () => {
    expect(verdict({ a: [] }, 'a')).toEqual([]);
  });
});

describe('the faults of chaos', () => {
  test('wait until most nodes have healed, because the rules judge nothing between fewer', () => {
    const subjects = ['a', 'b', 'c'].map((name) => new Subject({} as LabNode, name));
    for (const subject of subjects.slice(1)) subject.trouble(1_000)(2_000);

    expect([1_500, 31_000, 33_000].map((nowMs) => areMostCalm(subjects, nowMs))).toEqual([false, false, true]);
  });
});

describeWith(['network namespaces', 'nightly'], 'five real nodes', () => {
  test('keep every rule under random faults', async () => {
    const quiet = (): void => undefined;
    const { violations } = await runChaos({
      minutes: 5,
      nodes: 5,
      seed: Date.now() % 2 ** 31,
      print: console.log,
      progress: quiet,
    });
    expect(violations).toEqual([]);
  }, 600_000);
});
