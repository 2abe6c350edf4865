import type { Log } from '@bloom/log';
import { type Clock, sleep } from '@bloom/time';
import { copyEarlier, type CopyOptions } from './earlier-copy.js';
import type { FormerStream } from './former-stream.js';
import type { StreamTaken } from './handover.js';
import type { LiveStream } from './live-stream.js';
import type { StreamNames } from './names.js';
import type { StreamDirectory } from './stream-directory.js';

export interface TakeFilesOptions {
  /** The node that the stream has left. */
  node: string;
  former: FormerStream;
  names: StreamNames;
  stream: LiveStream;
  directory: StreamDirectory;
  fetch: CopyOptions['fetch'];
  /** Tells that node how this one has got the files. Rejects when it does not answer. */
  tell(how: StreamTaken): Promise<void>;
  signal: AbortSignal;
  clock: Clock;
  log: Log;
}

const TELL_PAUSE_MS = 1_000;
const TELL_FOR_MS = 120_000;

/** Gets the earlier files of a stream whose room has moved here, and then lets its former node remove them. */
export async function takeFiles(options: TakeFilesOptions): Promise<void> {
  const { former, directory } = options;
  const isShared = former.stored?.isShared === true;
  const reason = isShared ? undefined : await copyAll(options);
  await directory.idle();
  const hasAll = reason === undefined && !directory.failed;
  await report(options, hasAll ? (isShared ? 'shared' : 'copied') : 'incomplete');
}

/** Returns why not all have arrived. */
async function copyAll(options: TakeFilesOptions): Promise<string | undefined> {
  const { node, former, names, stream, directory, fetch, signal, clock, log } = options;
  const since = clock.now();
  const { earlier = [] } = former.stored ?? {};
  const store = async (name: string, data: Buffer): Promise<void> => {
    directory.write(name, data);
    await directory.idle();
    if (directory.failed) throw Object.assign(new Error('the disk takes no more'), { code: 'NOT_STORED' });
  };
  const headers = former.headers.keys();
  const { arrived, reason, bytes } = await copyEarlier({
    segments: earlier,
    headers,
    names,
    fetch,
    store,
    signal,
    clock,
  });
  stream.adopt(arrived);
  if (reason === undefined) {
    const ms = Math.round(clock.now() - since);
    log.info('hls.files_fetched', { node, segments: arrived.length, bytes, ms });
  } else log.warn('hls.files_missing', { node, segments: earlier.length - arrived.length, reason });

  return reason;
}

async function report({ tell, signal, clock }: TakeFilesOptions, how: StreamTaken): Promise<void> {
  for (const until = clock.now() + TELL_FOR_MS; ; ) {
    try {
      return await tell(how);
    } catch {
      // That node keeps its files then.
      if (signal.aborted || clock.now() >= until) return;
      await sleep(TELL_PAUSE_MS, { clock, signal });
    }
  }
}
