// `npm start`: sets everything up if needed, then runs one node in the foreground with the measured flags.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { root, setUp } from './setup.mjs';

setUp();

// A young generation of 64 MB keeps the garbage collector out of the packet path. On so small a heap its helper threads
// cost more than they save: a fifth of the CPU per forwarded packet.
const flags = ['--max-semi-space-size=64', '--single-threaded-gc'];
const node = spawn(
  process.execPath,
  [...flags, join(root, 'apps', 'bloom', 'dist', 'main.js'), ...process.argv.slice(2)],
  {
    stdio: 'inherit',
  },
);
// The terminal sends Ctrl-C to both processes, but a supervisor signals only this one, so forward the signal.
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => node.kill(signal));
process.on('SIGINT', () => {});
node.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // Follows the shell convention, so that a supervisor sees which signal it was.
  console.error(`the node was ended by ${signal}`);
  process.exit(128 + constants.signals[signal]);
});
