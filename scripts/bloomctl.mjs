// `npm run bloomctl -- <command>`: looks inside a running node. Builds it when that has not happened yet; otherwise
// the program starts at once, in this process.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, setUp } from './setup.mjs';

const program = join(root, 'apps', 'bloomctl', 'dist', 'bloomctl.js');
if (!existsSync(program)) setUp();
await import(program);
