// The server SDK of Jellyfish, unmodified.
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { PythonPackage } from './python.mjs';

const RUN_MS = 60_000;
const sdk = new PythonPackage('jellyfish-server-sdk', '0.4.0');

export const jellyfishSdk = {
  title: 'jellyfish-server-sdk 0.4.0 makes rooms and peers, hears of them, and reads each error',
  missing: () => sdk.missing(),
  run: ({ url, token }) =>
    sdk.run('python', [join(root, 'scripts', 'interop', 'jellyfish_sdk.py'), url, token], { timeout: RUN_MS }),
};
