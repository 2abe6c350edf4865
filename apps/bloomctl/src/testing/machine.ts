import { PassThrough } from 'node:stream';
import type { Machine } from '../machine.js';

export interface TestMachine extends Machine {
  /** Output so far. */
  readonly printed: { out: string; err: string };
  interrupt(): void;
}

/** Returns a machine with an empty environment for one run of the program. */
export function testMachine(
  fields: Partial<Pick<Machine, 'env' | 'home' | 'cwd' | 'temporaryPath' | 'uid' | 'stdin'>> & {
    columns?: number;
    isTTY?: boolean;
  } = {},
): TestMachine {
  const { columns, isTTY = false, ...rest } = fields;
  const printed = { out: '', err: '' };
  let interrupt: () => void = () => {};
  const interrupted = new Promise<void>((resolve) => (interrupt = resolve));
  const stream = (into: 'out' | 'err') => ({
    write: (text: string | Uint8Array) => ((printed[into] += String(text)), true),
    isTTY,
    columns,
  });
  return {
    env: {},
    home: '/nonexistent',
    cwd: '/nonexistent',
    temporaryPath: '/nonexistent',
    uid: 812,
    hostname: 'desk',
    addresses: [],
    user: 'ops',
    pid: 812,
    stdin: new PassThrough(),
    stdout: stream('out'),
    stderr: stream('err'),
    now: Date.now,
    ...rest,
    printed,
    interrupted,
    interrupt,
  };
}
