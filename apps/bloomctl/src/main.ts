// `bloomctl`: looks inside a running cluster. Everything happens in program.ts; this is the process around it.
import { networkInterfaces, homedir, hostname, userInfo } from 'node:os';
import { EXIT } from './exit.js';
import { runProgram } from './program.js';

/** As a shell says it of a program that a signal ended. */
const INTERRUPTED = 130;

/** A reader that has had enough (`bloomctl logs | head`) is no fault; a full disk is one, and never the "no" of a check. */
function endOf(stream: string): (error: NodeJS.ErrnoException) => never {
  return ({ code, message }) => {
    if (code === 'EPIPE') process.exit(0);
    if (stream === 'stdout') process.stderr.write(`bloomctl: the output cannot be written: ${message}\n`);
    process.exit(EXIT.fault);
  };
}
process.stdout.on('error', endOf('stdout'));
process.stderr.on('error', endOf('stderr'));

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'somebody';
  }
}

let interrupt: () => void = () => {};
const interrupted = new Promise<void>((resolve) => (interrupt = resolve));
/** A command that has an end to write. */
let isAwaited = false;
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    signals += 1;
    // The second one means it.
    if (signals > 1 || !isAwaited) process.exit(INTERRUPTED);
    interrupt();
  });
}

const code = await runProgram(process.argv.slice(2), {
  env: process.env,
  home: homedir(),
  hostname: hostname(),
  addresses: Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address),
  user: userName(),
  pid: process.pid,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  now: Date.now,
  get interrupted() {
    isAwaited = true;
    return interrupted;
  },
});
// Links and timers may still be closing; nobody waits for them. What was printed must be out, though.
// The next turn: a write that failed is told before.
process.stdout.write('', () => process.stderr.write('', () => setImmediate(() => process.exit(code))));
