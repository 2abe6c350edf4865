// LiveKit's SDKs in other languages, unmodified.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../setup.mjs';
import { PythonPackage, runProgram } from './python.mjs';

const RUN_MS = 150_000;
const BUILD_MS = 600_000;
export const KEY = 'APIinterop';
export const SECRET = 'a-secret-of-more-than-thirty-two-characters';
export const env = { JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` };
const sdk = new PythonPackage('livekit', '1.2.1', ['livekit-api==1.2.2']);

/** The Rust core, which other native SDKs share, and the server SDK. */
export const livekitPython = {
  title: 'livekit 1.2.1 for Python shows red, plays 440 Hz, and passes data and RPC, by one and by two connections',
  missing: () => sdk.missing(),
  env,
  run: ({ url }) =>
    sdk.run('python', [join(root, 'scripts', 'interop', 'livekit_clients.py'), url, KEY, SECRET], { timeout: RUN_MS }),
};

const goFolder = join(root, 'scripts', 'interop', 'livekit-go');
const goProgram = join(root, 'node_modules', '.cache', 'livekit-go');
/** Subscribers, and seconds during which none of them may lose a packet. 50 for 60 s have been measured once. */
const LOAD = ['20', '2'];

function go(args) {
  const { status, stderr } = spawnSync('go', args, {
    cwd: goFolder,
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: BUILD_MS,
    env: { ...process.env, GOTOOLCHAIN: 'local' },
  });

  return status === 0 ? undefined : stderr || 'go did not finish';
}

/** Pion, which is the DTLS server of an ICE-lite node that offers. Its `go.mod` names the oldest toolchain. */
export const livekitGo = {
  title:
    'server-sdk-go 2.19.0 publishes to 20 subscribers without loss, passes data, and follows a room that moves and a ' +
    'node that drains, by one and by two connections',
  nodes: 2,
  missing: () => {
    if (spawnSync('go', ['version']).status !== 0) return 'go';
    // The first needs no network for modules that are there, but takes a syntax error for one that is missing.
    const fault = go(['list', '-deps', '.']) && go(['mod', 'download']);

    return fault && `the Go and the modules of scripts/interop/livekit-go/go.mod: ${fault.trim()}`;
  },
  env,
  run: async ({ url, token }) => {
    mkdirSync(dirname(goProgram), { recursive: true });

    return (
      go(['build', '-o', goProgram, '.']) ??
      runProgram(goProgram, [url, KEY, SECRET, ...LOAD, token], { timeout: RUN_MS })
    );
  },
};
