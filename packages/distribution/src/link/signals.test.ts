import { expect, test } from '@jest/globals';
import { atom, Pid, Ref, TermWriter } from '@bloom/etf';
import type { Link } from './link.js';
import { Signals } from './signals.js';

const local = new Pid('a@h', 101, 0, 7);
const remote = new Pid('b@h', 101, 0, 8);

function signalsTo(sent: number[]): Signals {
  const link = {
    remote: { name: 'b@h' },
    signal: (put: (writer: TermWriter, exitPayload: boolean) => void) => {
      const writer = new TermWriter();
      put(writer, true);
      // The number of the message.
      sent.push(writer.bytes[4] as number);
    },
  } as unknown as Link;

  return new Signals({
    link,
    table: { whereIs: () => local, deliver: () => {}, down: () => {}, exit: () => {} },
    self: { name: 'a@h', creation: 7 },
    maxEntries: 10,
    guard: (_, run) => run(),
  });
}

test('a monitor that is asked for again and again is one', () => {
  const sent: number[] = [];
  const signals = signalsTo(sent);
  const ref = new Ref('b@h', 8, [1, 2, 3]);
  for (let i = 0; i < 100; i++) signals.control({ op: 'monitor', from: remote, to: local, ref }, undefined);
  expect(signals.size).toBe(1);
  signals.exited(local, atom('normal'));
  expect(sent).toEqual([28]);
});
