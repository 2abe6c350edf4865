import { expect, test } from '@jest/globals';
import { atom, Pid, Ref, TermWriter } from '@bloom/etf';
import type { Link } from './link.js';
import { Signals } from './signals.js';

const local = new Pid('a@h', 101, 0, 7);
const remote = new Pid('b@h', 101, 0, 8);

function signalsTo(sent: number[], others = () => 0): Signals {
  const link = {
    remote: { name: 'b@h' },
    signal: (put: (writer: TermWriter, exitPayload: boolean) => void) => {
      const writer = new TermWriter();
      put(writer, true);
      // The number of the message.
      sent.push(writer.bytes[4] as number);
    },
  } as unknown as Link;

  const signals: Signals = new Signals({
    link,
    table: { whereIs: () => local, deliver: () => {}, down: () => {}, exit: () => {} },
    self: { name: 'a@h', creation: 7 },
    maxEntries: 10,
    share: 4,
    total: () => signals.size + others(),
    guard: (_, run) => run(),
  });
  return signals;
}

test('creates only one monitor for repeated requests', () => {
  const sent: number[] = [];
  const signals = signalsTo(sent);
  const ref = new Ref('b@h', 8, [1, 2, 3]);
  for (let i = 0; i < 100; i++) signals.control({ op: 'monitor', from: remote, to: local, ref }, undefined);
  expect(signals.size).toBe(1);
  signals.exited(local, atom('normal'));
  expect(sent).toEqual([28]);
});

test('gives a connection its share of the monitors, and more while others leave some', () => {
  const watch = (signals: Signals, count: number): number => {
    for (let i = 0; i < count; i++) {
      const ref = new Ref('b@h', 8, [1, 2, i]);
      signals.control({ op: 'monitor', from: remote, to: local, ref }, undefined);
    }
    return signals.size;
  };
  expect(watch(signalsTo([]), 20)).toBe(10);
  expect(
    watch(
      signalsTo([], () => 3),
      20,
    ),
  ).toBe(7);
  expect(
    watch(
      signalsTo([], () => 1_000),
      20,
    ),
  ).toBe(4);
});
