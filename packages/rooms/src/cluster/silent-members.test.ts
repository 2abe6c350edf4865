import { beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { SilentMembers } from './silent-members.js';

const never = () => new Promise<never>(() => {});

let clock: ManualClock;
let members: string[];
let frozen: boolean;
let received: number;
let silence: SilentMembers;

beforeEach(() => {
  clock = new ManualClock();
  members = ['b'];
  frozen = true;
  received = 0;
  silence = new SilentMembers({
    members: () => members,
    ping: (_node, timeoutMs) =>
      new Promise((resolve, reject) => {
        if (!frozen) resolve('pong');
        else clock.setTimeout(() => reject(new Error('no answer')), timeoutMs);
      }),
    received: () => received,
    log: silentLog,
    clock,
  });
});

const advance = (ms: number) => clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));
const outcome = (call: Promise<unknown>) => call.catch((error: { code: string }) => error.code);

test('fails the first call to a frozen member after 1.1 s and every later one immediately', async () => {
  let first: unknown;
  void outcome(silence.guard('b', never)).then((result) => (first = result));
  await advance(1_099);
  expect(first).toBeUndefined();
  expect(silence.has('b')).toBe(false);
  await advance(1);
  expect(first).toBe('MEMBER_SILENT');
  expect(silence.list()).toEqual(['b']);
  let asked = false;
  const later = silence.guard('b', async () => (asked = true));
  await expect(later).rejects.toMatchObject({ code: 'MEMBER_SILENT', message: 'b does not answer' });
  expect(asked).toBe(false);
});

test('calls a member again once it answers', async () => {
  void outcome(silence.guard('b', never));
  await advance(1_100);
  frozen = false;
  await advance(1_300);
  expect(silence.has('b')).toBe(false);
  await expect(silence.guard('b', async () => 'answer')).resolves.toBe('answer');
});

test("keeps the call's time limit for a member that is merely slow", async () => {
  frozen = false;
  let answer: (value: string) => void = () => {};
  const call = silence.guard('b', () => new Promise<string>((resolve) => (answer = resolve)));
  await advance(3_000);
  answer('late');
  await expect(call).resolves.toBe('late');
});

test('does not treat a member as silent when its answer waits behind other data', async () => {
  let answer: (value: string) => void = () => {};
  const call = silence.guard('b', () => new Promise<string>((resolve) => (answer = resolve)));
  await advance(500);
  received += 1;
  await advance(2_500);
  expect(silence.has('b')).toBe(false);
  answer('late');
  await expect(call).resolves.toBe('late');
});

test('calls a silent member again once it sends anything', async () => {
  void outcome(silence.guard('b', never));
  await advance(1_500);
  expect(silence.has('b')).toBe(true);
  received += 1;
  await advance(1_000);
  expect(silence.has('b')).toBe(false);
});

test('keeps the reason of a failing call', async () => {
  await expect(silence.guard('b', () => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
});

test('fails calls to a lost member for lack of a link, and does not treat it as silent', async () => {
  const call = outcome(
    silence.guard(
      'b',
      () => new Promise((_resolve, reject) => clock.setTimeout(() => reject({ code: 'NO_CONNECTION' }), 1_200)),
    ),
  );
  members = [];
  await advance(1_200);
  expect(await call).toBe('NO_CONNECTION');
  expect(silence.has('b')).toBe(false);
});

test('forgets a silent member that leaves', async () => {
  const call = silence.expect('b', Promise.reject(new Error('too late')));
  await expect(call).rejects.toThrow('too late');
  expect(silence.has('b')).toBe(true);
  members = [];
  await advance(1_300);
  expect(silence.has('b')).toBe(false);
});
