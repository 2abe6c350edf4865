// A call of two participants in a room of its own, and what its listener misses. It is a process, so that the load of
// the test itself is not measured. Each packet carries the time at which it was sent, by the clock of this process.
import { readdirSync, readFileSync } from 'node:fs';
import { openConnection, Publisher, signal, stampOf } from '@bloom/participant';
import WebSocket from 'ws';

const [url, pid, ...tokens] = process.argv.slice(2);
const PACKETS_PER_SECOND = 50;
const PACKET_MS = 1_000 / PACKETS_PER_SECOND;
const TICK_MS = 5;
const publisher = new Publisher('audio', 172);

/** Time that this process did not run, in ms. */
let stalledMs = 0;
let tickedAt = performance.now();
const tick = () => {
  const now = performance.now();
  stalledMs += Math.max(0, now - tickedAt - TICK_MS);
  tickedAt = now;
};
setInterval(tick, TICK_MS);

/** Returns how long each thread of the node has waited for a processor, in ms. */
const waits = () => {
  const waited = new Map();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      const schedstat = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8');
      waited.set(task, Number(schedstat.split(' ')[1]) / 1e6);
    } catch {
      // The thread has ended.
    }
  }
  return waited;
};
/** Returns the longest wait of a thread between two looks. */
const waitedMs = (before, after) =>
  Math.max(0, ...[...after].map(([task, waited]) => waited - (before.get(task) ?? waited)));

const fresh = () => ({ received: 0, expected: 0, maxGapMs: 0 });
let report = fresh();
let last;

function arrived({ header: { sequenceNumber }, payload }) {
  tick();
  const now = { at: performance.now(), sentAt: stampOf(payload) / 1_000, stalledMs, waits: waits(), sequenceNumber };
  const step = last === undefined ? 1 : (sequenceNumber - last.sequenceNumber) & 0xffff;
  // A packet that comes late was counted as expected when its successor came.
  report.received += 1;
  if (step >= 0x8000) return;
  report.expected += step;
  if (last !== undefined) {
    // Not to blame: a sender that was late, a pause of this process, and other programs on the machine.
    const late = Math.max(0, now.sentAt - last.sentAt - step * PACKET_MS);
    const elsewhere = late + (now.stalledMs - last.stalledMs) + waitedMs(last.waits, now.waits);
    report.maxGapMs = Math.max(report.maxGapMs, now.at - last.at - elsewhere);
  }
  last = now;
}

async function join(token, published) {
  const connection = openConnection({
    iceInterfaceAddresses: { udp4: '127.0.0.1' },
    iceAdditionalHostAddresses: ['127.0.0.1'],
  });
  connection.onTrack.subscribe((track) => track.onReceiveRtp.subscribe(arrived));
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket/peer/websocket`);
  await signal(connection, socket, { token, publisher: published });
}

await join(tokens[0], publisher);
publisher.start(PACKETS_PER_SECOND);
await join(tokens[1], undefined);
process.on('message', (request) => {
  if (request === 'restart') report = fresh();
  // The time since the last packet is a gap too, if there will be no other.
  tick();
  const silentMs = last === undefined ? Infinity : performance.now() - last.at - (stalledMs - last.stalledMs);
  process.send({ ...report, silentMs });
});
process.on('disconnect', () => process.exit());
