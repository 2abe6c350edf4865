import { describe, expect, test } from '@jest/globals';
import type { LabNode } from '../cluster/lab-cluster.js';
import { describeWith } from '../harness/needs.js';
import type { Session } from './listeners.js';
import { checkStories, type KnownRoom, roomsForCalls } from './rooms.js';
import { runChaos } from './run.js';
import { areMostCalm, calmOf, Subject } from './subject.js';
import { Timeline } from './timeline.js';
import { verdictOf } from './verdict.js';

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

describe('the calls of chaos', () => {
  const [calm, healing] = ['calm', 'healing'].map((name) => new Subject({} as LabNode, name)) as [Subject, Subject];
  healing.trouble(1_000)(2_000);

  test('begin in rooms of nodes that have been calm since the creation, and that nobody else has or deletes', () => {
    const room: KnownRoom = { id: 'r', owner: calm, process: 0, sinceMs: 5_000, hasWebhook: false, isHeld: false };
    const rooms = [{ ...room, owner: healing }, { ...room, isHeld: true }, { ...room, deletedMs: 5_500 }, room];
    expect(roomsForCalls(rooms, 6_000)).toEqual([room]);
  });

  test('lead through calm nodes', () => {
    expect(calmOf([healing, calm], 6_000)).toEqual([calm]);
  });
});

describe('the last lines of chaos', () => {
  const judged = {
    pictureS: 250,
    joins: 30,
    rooms: 400,
    requests: 2_000,
    faults: new Map(Object.entries({ crash: 2, loss: 3 })),
  };

  test('say what happened and what was judged', () => {
    expect(verdictOf(judged, [])).toEqual([
      '5 faults: 2 crash, 3 loss',
      'judged: 250 seconds of pictures, 30 joins, 400 rooms, 2000 requests',
      'no rule was broken',
    ]);
  });

  test('say what was not judged', () => {
    expect(verdictOf({ ...judged, pictureS: 0, joins: 0 }, []).at(-1)).toBe(
      'no rule was broken, but there were no seconds of pictures and no joins to judge',
    );
  });

  test('name the first broken rule', () => {
    expect(verdictOf(judged, ['this', 'that']).at(-1)).toBe('2 rules were broken, the first: this');
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
    const { violations, judged } = await runChaos({
      minutes: 5,
      nodes: 5,
      seed: Date.now() % 2 ** 31,
      print: console.log,
      progress: quiet,
    });
    expect(violations).toEqual([]);
    expect(judged.pictureS).toBeGreaterThan(0);
  }, 600_000);
});
