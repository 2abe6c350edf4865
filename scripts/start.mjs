// `npm start`: sets everything up if needed, then runs one node in the foreground with the measured flags.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get as getOverHttp } from 'node:http';
import { get as getOverTls } from 'node:https';
import { constants } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { root, setUp, withCommit } from './setup.mjs';

/** As in packages/config, which is not built yet. */
const DEFAULT_PORTS = { production: 8080, test: 4002 };
const ANSWER_MS = 1_000;

/** Returns the address of a node that already answers where the new one would listen. */
async function runningNode({ JF_IP: ip = '', JF_PORT: given, JF_SSL_KEY_PATH: key = '', NODE_ENV: profile }) {
  const host = ['', '0.0.0.0', '::'].includes(ip) ? '127.0.0.1' : ip;
  const port = given || (DEFAULT_PORTS[profile] ?? 5002);
  const [scheme, get] = key === '' ? ['http', getOverHttp] : ['https', getOverTls];
  const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  try {
    // The certificate names the host that clients use, not this address.
    const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(ANSWER_MS) };
    const request = get(`${url}/health/live`, options).on('error', () => {});
    const [answer] = await once(request, 'response');
    return (await json(answer)).status === 'UP' ? url : undefined;
  } catch {
    return undefined;
  }
}

const options = process.argv.slice(2);
// Building would replace files that the other node still loads.
const running = options.length === 0 ? await runningNode(process.env) : undefined;
if (running !== undefined) {
  console.error(`Bloom is already running at ${running}. JF_PORT and JF_METRICS_PORT give a second node other ports.`);
  process.exit(1);
}
setUp();

// A young generation of 64 MB keeps the garbage collector out of the packet path. On so small a heap its helper threads
// cost more than they save: a fifth of the CPU per forwarded packet.
const flags = ['--max-semi-space-size=64', '--single-threaded-gc'];
const node = spawn(process.execPath, [...flags, join(root, 'apps', 'bloom', 'dist', 'main.js'), ...options], {
  stdio: 'inherit',
  env: withCommit(process.env),
});
// The terminal sends Ctrl-C to both processes, but a supervisor signals only this one, so forward the signal.
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => node.kill(signal));
process.on('SIGINT', () => {});
node.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // Follows the shell convention, so that a supervisor sees which signal it was.
  console.error(`the node was ended by ${signal}`);
  process.exit(128 + constants.signals[signal]);
});
