// Preloaded into a node: every second transport of a room goes to another media worker, however idle the first one is.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

/** Replaces the choice of a worker in the node's program. Runs in a thread of its own, so it uses nothing around it. */
async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.includes('/apps/bloom/dist/') || loaded.source === undefined) return loaded;
  const source = String(loaded.source);
  const decides = 'function assignTransport(';
  if (!source.includes(decides)) return loaded;
  const alternate = `${decides}{ current, samples }) {
    const { worker } = samples.find((sample) => sample.worker !== current) ?? samples[0];
    return { worker, because: 'busier_than_others' };
  }`;
  return { ...loaded, source: `${source.replace(decides, 'function assignByLoad(')}\n${alternate}\n` };
}

if (isMainThread) register(`data:text/javascript,${encodeURIComponent(`export ${load}`)}`);
