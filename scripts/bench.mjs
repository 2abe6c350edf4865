// `npm run bench:<name> -- [options]`: sets everything up, then runs apps/bench/dist/<name>/main.js, whose first
// comment lists the options.
import { join } from 'node:path';
import { ensurePackages } from './testing/debian-packages.mjs';
import { root, run, setUp } from './setup.mjs';

const [name, ...args] = process.argv.slice(2);
setUp();
if (args.some((arg) => arg.includes('janus'))) ensurePackages(['janus']);
if (name === 'hls' || name === 'mix') ensurePackages(['ffmpeg']);
run(process.execPath, ['--max-semi-space-size=64', join(root, 'apps', 'bench', 'dist', name, 'main.js'), ...args]);
