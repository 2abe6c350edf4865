// `npm run bloomctl -- <command>`: inspects a running node. Builds bloomctl if needed, then starts it
// in this process.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, setUp } from './setup.mjs';

const program = join(root, 'apps', 'bloomctl', 'dist', 'bloomctl.js');
if (!existsSync(program)) setUp();
await import(program);
