/** Preloaded into every thread of a server (`--import`): leaves a file with the thread's number in Node, named after its number in the kernel. */
import { readlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { threadId } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder !== null) writeFileSync(join(folder, basename(readlinkSync('/proc/thread-self'))), String(threadId));
