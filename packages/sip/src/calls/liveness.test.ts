import { expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { Liveness } from './liveness.js';

const SECOND = 1000;

/** A call whose phone sends a packet and answers OPTIONS only when the test says so. */
function call() {
  const clock = new ManualClock();
  const asked: { atMs: number; answered: () => void }[] = [];
  const phone: { packetAtMs: number | undefined; goneAtMs: number | undefined } = {
    packetAtMs: undefined,
    goneAtMs: undefined,
  };
  const liveness = new Liveness({
    clock,
    timeoutMs: 60 * SECOND,
    quietFor: () => (phone.packetAtMs === undefined ? undefined : clock.now() - phone.packetAtMs),
    ask: (answered) => asked.push({ atMs: clock.now(), answered }),
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
  return { clock, liveness, asked, phone, pass };
}

test('a phone that sends packets is not asked', () => {
  const { clock, asked, phone, pass } = call();
  pass(300, () => {
    phone.packetAtMs = clock.now();
  });
  expect(asked).toEqual([]);
});

test('a silent phone is asked after 10 s, and every 10 s from then on', () => {
  const { asked, pass } = call();
  pass(35);
  expect(asked.map(({ atMs }) => atMs)).toEqual([10 * SECOND, 20 * SECOND, 30 * SECOND]);
});

test('a silent phone that answers stays in the call', () => {
  const { asked, phone, pass } = call();
  pass(600, () => asked.pop()?.answered());
  expect(phone.goneAtMs).toBeUndefined();
});

test('a phone that sends a packet every 40 s and answers nothing stays in the call', () => {
  const { clock, phone, pass } = call();
  pass(600, () => {
    if (clock.now() % (40 * SECOND) === 0) phone.packetAtMs = clock.now();
  });
  expect(phone.goneAtMs).toBeUndefined();
});

test('a phone without any sign of life is gone after 60 s', () => {
  const { phone, pass } = call();
  pass(61);
  expect(phone.goneAtMs).toBe(60 * SECOND);
});

test('a phone that holds the call may stay silent', () => {
  const { liveness, phone, pass } = call();
  liveness.setHeld(true);
  pass(600);
  expect(phone.goneAtMs).toBeUndefined();
});

test('the time on hold does not count once the call is resumed', () => {
  const { liveness, phone, pass } = call();
  liveness.setHeld(true);
  pass(600);
  liveness.setHeld(false);
  pass(59);
  expect(phone.goneAtMs).toBeUndefined();
});

test('a stopped watch sets no timer', () => {
  const { clock, liveness } = call();
  liveness.stop();
  expect(clock.pending).toBe(0);
});
