// The server SDK of a later Fishjam release, unmodified.
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { PythonPackage } from './python.mjs';

const RUN_MS = 60_000;
const sdk = new PythonPackage('fishjam-server-sdk', '0.31.1');

export const fishjamSdk = {
  title: 'fishjam-server-sdk 0.31.1 makes rooms and peers, and is refused what this server lacks',
  missing: () => sdk.missing(),
  run: ({ url, token }) =>
    sdk.run('python', [join(root, 'scripts', 'interop', 'fishjam_sdk.py'), url, token], { timeout: RUN_MS }),
};
