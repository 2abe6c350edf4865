// LiveKit's SDKs in other languages, unmodified.
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { PythonPackage } from './python.mjs';

const RUN_MS = 90_000;
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
