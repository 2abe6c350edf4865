// LiveKit's SDKs in other languages, unmodified.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../setup.mjs';
import { PythonPackage, runProgram } from './python.mjs';

const RUN_MS = 90_000;
const BUILD_MS = 600_000;
const KEY = 'APIinterop';
const SECRET = 'a-secret-of-more-than-thirty-two-characters';
const env = { JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` };
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
/** Subscribers, and seconds during which none of them may lose a packet. */
const LOAD = ['50', '2'];

/** Pion, which is the DTLS server of an ICE-lite node that offers. Its `go.mod` names the oldest toolchain. */
export const livekitGo = {
  title:
    'server-sdk-go 2.19.0 publishes to 50 subscribers without loss, and passes data, by one and by two connections',
  missing: () => {
    if (spawnSync('go', ['version']).status !== 0) return 'go';
    mkdirSync(dirname(goProgram), { recursive: true });
    const options = {
      cwd: goFolder,
      stdio: 'inherit',
      timeout: BUILD_MS,
      env: { ...process.env, GOTOOLCHAIN: 'local' },
    };
    return spawnSync('go', ['build', '-o', goProgram, '.'], options).status === 0
      ? undefined
      : 'the Go and the modules of scripts/interop/livekit-go/go.mod';
  },
  env,
  run: ({ url }) => runProgram(goProgram, [url, KEY, SECRET, ...LOAD], { timeout: RUN_MS }),
};
