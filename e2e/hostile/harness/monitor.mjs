// Requests the node's health ten times a second and reads its memory. It has a separate thread, so that the attack's
// own CPU use does not look like slowness of the node.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const PERIOD_MS = 100;
const { url, token, pid } = workerData;

const rssMb = (of = pid) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${of}/status`, 'utf8'))?.[1] ?? 0) / 1024;
/** Returns the memory of a process and of all that it has forked; 0 for one that has ended. */
const treeMb = (of = pid) => {
  try {
    const forked = readdirSync(`/proc/${of}/task`).flatMap((task) =>
      readFileSync(`/proc/${of}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
    );
    return forked.reduce((sum, child) => sum + treeMb(child), rssMb(of));
  } catch {
    return 0;
  }
};
/** Returns how long the node's main thread has waited for a processor, in ms; 0 if unknown. */
const waitedMs = () => {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
};
const fresh = () => {
  const [rss, tree] = [rssMb(), treeMb()];
  return { healthMs: [], failures: [], rssBeforeMb: rss, rssPeakMb: rss, treeBeforeMb: tree, treePeakMb: tree };
};

let report = fresh();

parentPort.on('message', (request) => {
  if (request === 'restart') report = fresh();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort.postMessage({ ...report, treeMb: treeMb() });
});

for (;;) {
  const current = report;
  const [from, waited] = [performance.now(), waitedMs()];
  try {
    const answer = await fetch(`${url}/health`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(20_000),
    });
    await answer.arrayBuffer();
    if (answer.status !== 200) current.failures.push(`/health answered ${answer.status}`);
  } catch (error) {
    current.failures.push(`/health: ${error.cause?.message ?? error.message}`);
  }
  // The node is not to blame for other tests on the machine.
  current.healthMs.push(Math.max(0, performance.now() - from - (waitedMs() - waited)));
  try {
    current.rssPeakMb = Math.max(current.rssPeakMb, rssMb());
    current.treePeakMb = Math.max(current.treePeakMb, treeMb());
  } catch {
    current.failures.push('the process is gone');
  }
  await delay(PERIOD_MS);
}
