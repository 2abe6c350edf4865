// `npm run generate:debugging`: runs the sessions of docs/guide/debugging.md and shell.md on a cluster of three nodes
// with a call, and rewrites the pages and their pictures. Needs Chromium. Check the diff before you keep it.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root, setUp } from '../setup.mjs';

setUp();
const { status } = spawnSync(
  process.execPath,
  [
    '--experimental-vm-modules',
    '--no-warnings',
    join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
    'e2e/bloomctl/guide',
    '--selectProjects',
    'e2e',
    '--runInBand',
  ],
  { cwd: root, stdio: 'inherit', env: { ...process.env, BLOOM_WRITE_GUIDE: '1' } },
);
process.exit(status ?? 1);
