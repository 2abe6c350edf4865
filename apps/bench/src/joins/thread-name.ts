/** Preloaded into every server thread (`--import`): maps the thread's kernel number to its Node.js number in a file. */
import { readlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { threadId } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder !== null) writeFileSync(join(folder, basename(readlinkSync('/proc/thread-self'))), String(threadId));
