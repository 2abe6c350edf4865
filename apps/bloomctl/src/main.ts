// `bloomctl` inspects a running node. program.ts does the work; this file handles the process around it.
import { networkInterfaces, homedir, hostname, tmpdir, userInfo } from 'node:os';
import { EXIT } from './exit.js';
import { runProgram } from './program.js';

/** Exits quietly if the reader closed the pipe (`bloomctl logs | head`). A full disk is a fault, not a check's "no". */
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
/** True while a command handles Ctrl-C itself. */
let isAwaited = false;
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    signals += 1;
    // A second signal ends the process immediately.
    if (signals > 1 || !isAwaited) process.exit(EXIT.interrupted);
    interrupt();
  });
}

const code = await runProgram(process.argv.slice(2), {
  env: process.env,
  home: homedir(),
  cwd: process.cwd(),
  temporaryPath: tmpdir(),
  uid: process.getuid?.(),
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
// Wait for the output, not for links and timers. Exit in the next turn, so that a failed write is reported first.
process.stdout.write('', () => process.stderr.write('', () => setImmediate(() => process.exit(code))));
