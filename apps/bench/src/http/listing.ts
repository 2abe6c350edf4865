import { Client, inParallel } from './client.js';
import type { BenchNode } from './node.js';
import { latencyText, type Result, summary } from './result.js';

const LISTINGS = 200;
const SINGLES = 5_000;

/** Measures the whole list and single rooms on a node full of rooms with two peers each, one request at a time. */
export async function measureListing(node: BenchNode, rooms: number): Promise<Result[]> {
  const client = new Client(node.port);
  try {
    await inParallel(rooms, 8, async (index) => {
      await client.json(201, 'POST /room', { roomId: `room-${index}` });
      for (let peer = 0; peer < 2; peer += 1) {
        await client.json(201, `POST /room/room-${index}/peer`, { type: 'webrtc', options: {} });
      }
    });

    const listings: number[] = [];
    for (let round = 0; round < LISTINGS; round += 1) {
      const from = performance.now();
      const { status, text } = await client.call('GET', '/room');
      listings.push(performance.now() - from);
      if (round > 0 && round < LISTINGS - 1) continue;
      const { data } = JSON.parse(text) as { data: { peers: unknown[] }[] };
      if (status !== 200 || data.length !== rooms || data.some(({ peers }) => peers.length !== 2)) {
        throw new Error(`GET /room answered ${status} with ${data.length} rooms of ${rooms}`);
      }
    }
    const singles: number[] = [];
    for (let round = 0; round < SINGLES; round += 1) {
      const from = performance.now();
      const { status } = await client.call('GET', `/room/room-${(round * 7) % rooms}`);
      singles.push(performance.now() - from);
      if (status !== 200) throw new Error(`GET /room/:id answered ${status}`);
    }

    const [all, one] = [summary(listings), summary(singles)];
    return [
      {
        what: `GET /room with ${rooms} rooms x 2 peers`,
        values: { ...all },
        measured: latencyText(all),
        target: 'p99 < 150 ms',
        met: all.p99 < 150,
      },
      {
        what: 'GET /room/:id beside them',
        values: { ...one },
        measured: latencyText(one),
        target: 'p99 < 10 ms',
        met: one.p99 < 10,
      },
    ];
  } finally {
    client.close();
  }
}
