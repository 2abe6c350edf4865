import { expect, test } from '@jest/globals';
import { AwakeClock } from '@bloom/time';
import { ManualClock } from '@bloom/time/testing';
import { Liveness } from './liveness.js';

const SECOND = 1000;

/** A call whose phone sends packets and answers OPTIONS only when the test makes it. */
function call({ isElsewhere = (): boolean => false } = {}) {
  const clock = new ManualClock();
  const asked: { atMs: number; answered: () => void }[] = [];
  const withdrawn: number[] = [];
  const phone: { packetAtMs: number | undefined; goneAtMs: number | undefined } = {
    packetAtMs: undefined,
    goneAtMs: undefined,
  };
  const liveness = new Liveness({
    clock,
    timeoutMs: 60 * SECOND,
    isElsewhere,
    quietFor: () => (phone.packetAtMs === undefined ? undefined : clock.now() - phone.packetAtMs),
    ask: (answered) => {
      if (answered === undefined) withdrawn.push(clock.now());
      else asked.push({ atMs: clock.now(), answered });
    },
    onGone: () => {
      phone.goneAtMs = clock.now();
    },
  });
  liveness.start();
  const pass = (seconds: number, each: () => void = () => undefined): void => {
    for (let i = 0; i < seconds; i += 1) {
      clock.advance(SECOND);
      each();
    }
  };
  return { clock, liveness, asked, withdrawn, phone, pass };
}

test('does not ask a phone that sends packets', () => {
  const { clock, asked, phone, pass } = call();
  pass(300, () => {
    phone.packetAtMs = clock.now();
  });
  expect(asked).toEqual([]);
});

test('asks a silent phone after 10 s, and every 10 s from then on', () => {
  const { asked, pass } = call();
  pass(35);
  expect(asked.map(({ atMs }) => atMs)).toEqual([10 * SECOND, 20 * SECOND, 30 * SECOND]);
});

test('keeps a silent phone that answers in the call', () => {
  const { asked, phone, pass } = call();
  pass(600, () => asked.pop()?.answered());
  expect(phone.goneAtMs).toBeUndefined();
});

test('keeps a phone in the call that sends a packet every 40 s and answers nothing', () => {
  const { clock, phone, pass } = call();
  pass(600, () => {
    if (clock.now() % (40 * SECOND) === 0) phone.packetAtMs = clock.now();
  });
  expect(phone.goneAtMs).toBeUndefined();
});

test('drops a phone without any sign of life after 60 s', () => {
  const { phone, pass } = call();
  pass(61);
  expect(phone.goneAtMs).toBe(60 * SECOND);
});

test('neither asks nor drops a phone that another one may have, and begins anew once none has', () => {
  let isElsewhere = false;
  const { asked, phone, pass } = call({ isElsewhere: () => isElsewhere });
  pass(5);
  isElsewhere = true;
  pass(100);
  expect([asked, phone.goneAtMs]).toEqual([[], undefined]);
  isElsewhere = false;
  pass(61);
  expect(asked[0]?.atMs).toBe(115 * SECOND);
  expect(phone.goneAtMs).toBe(165 * SECOND);
});

test('withdraws a question within a second once another phone may have the call', () => {
  let isElsewhere = false;
  const { asked, withdrawn, pass } = call({ isElsewhere: () => isElsewhere });
  pass(10);
  expect([asked.length, withdrawn]).toEqual([1, []]);
  isElsewhere = true;
  pass(1);
  expect(withdrawn).toEqual([11 * SECOND]);
});

test('keeps a phone whose packets wait unread behind a pause of the process', () => {
  const base = new ManualClock();
  const clock = new AwakeClock(base);
  let goneAtMs: number | undefined;
  const liveness = new Liveness({
    clock,
    timeoutMs: 60 * SECOND,
    quietFor: () => undefined,
    ask: () => undefined,
    onGone: () => {
      goneAtMs = base.now();
    },
  });
  liveness.start();
  base.advance(5 * SECOND);
  base.leap(90 * SECOND);
  base.advance(50 * SECOND);
  expect(goneAtMs).toBeUndefined();
  base.advance(10 * SECOND);
  expect(goneAtMs).toBe(149 * SECOND);
});

test('lets a phone stay silent while it holds the call', () => {
  const { liveness, phone, pass } = call();
  liveness.setHeld(true);
  pass(600);
  expect(phone.goneAtMs).toBeUndefined();
});

test('does not count the time on hold after the call is resumed', () => {
  const { liveness, phone, pass } = call();
  liveness.setHeld(true);
  pass(600);
  liveness.setHeld(false);
  pass(59);
  expect(phone.goneAtMs).toBeUndefined();
});

test('sets no timer once stopped', () => {
  const { clock, liveness } = call();
  liveness.stop();
  expect(clock.pending).toBe(0);
});
