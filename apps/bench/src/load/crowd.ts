/* oxlint-disable unicorn/require-post-message-target-origin -- a port of a thread has none */
/**
 * Joins a room at a fixed rate and leaves it shortly after, until the parent stops it, then posts the number of joins.
 * Runs in a separate thread, so that its clients' handshakes do not delay the publishers.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { connection } from '../sfu/client.js';
import { BloomClients } from '../sfu/servers/bloom-clients.js';
import { sleep } from './rooms.js';

export interface CrowdOptions {
  port: number;
  roomId: string;
  joinsPerSecond: number;
}

const { port, roomId, joinsPerSecond } = workerData as CrowdOptions;
const clients = new BloomClients(port);
let coming = true;
let joined = 0;
parentPort!.once('message', () => {
  coming = false;
});
const leaving: Promise<void>[] = [];
while (coming) {
  const next = sleep(1000 / joinsPerSecond);
  const pc = connection();
  const leave = await clients.join(roomId, pc);
  joined += 1;
  leaving.push(next.then(leave).then(() => pc.close()));
  await next;
}
await Promise.all(leaving);
clients.close();
parentPort!.postMessage(joined);
