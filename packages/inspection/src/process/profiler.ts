/** CPU and allocation profiles of a thread, in the format of DevTools. */
import { ThreadProfile, type MediaEngine, type ProfileAction } from '@bloom/sfu';
import { InspectionError } from '../errors.js';

export interface RunningProfile {
  /** Stops sampling and returns the profile as text. */
  finish(): Promise<string>;
  /** Stops sampling without a profile. */
  cancel(): void;
}

/**
 * Starts profiling this thread or a media worker (counted from 1). Only one profile at a time is possible; it slows the
 * thread by a few percent.
 * @throws InspectionError when there is no such worker
 */
export async function startProfile(
  what: 'cpu' | 'heap',
  worker: number | null,
  engine: Pick<MediaEngine, 'profileWorker'>,
): Promise<RunningProfile> {
  const post = worker === null ? ownThread() : workerThread(engine, worker);
  await post(what);

  return {
    finish: async () => (await post('stop')) ?? '',
    cancel: () => void post('cancel').catch(() => undefined),
  };
}

type Post = (action: ProfileAction) => Promise<string | undefined>;

function ownThread(): Post {
  const profile = new ThreadProfile();

  return async (action) => {
    if (action === 'stop') return profile.stop();
    if (action === 'cancel') profile.cancel();
    else profile.start(action);
    return undefined;
  };
}

function workerThread(engine: Pick<MediaEngine, 'profileWorker'>, worker: number): Post {
  return async (action) => {
    try {
      return await engine.profileWorker(worker, action);
    } catch (error) {
      throw new InspectionError('BAD_REQUEST', (error as Error).message, { cause: error });
    }
  };
}
