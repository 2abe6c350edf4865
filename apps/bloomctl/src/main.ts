// `bloomctl`: looks inside a running cluster. Everything happens in program.ts; this is the process around it.
import { networkInterfaces, homedir, hostname, userInfo } from 'node:os';
import { runProgram } from './program.js';

/** As a shell says it of a program that a signal ended. */
const INTERRUPTED = 130;

/** A reader that has had enough (`bloomctl logs | head`) is no fault. */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
}
process.stdout.on('error', endQuietly);
process.stderr.on('error', endQuietly);

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
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
