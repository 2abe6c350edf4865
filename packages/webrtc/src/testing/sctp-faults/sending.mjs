// Faults of werift-sctp as the sender of messages.
import { FRAGMENT } from './wire.mjs';

const ABANDON = 'abandonIfDue (mended-sctp.ts)';

/** @type {import('./index.mjs').Fault[]} */
export const SENDING = [
  {
    title: 'abandons the oldest message in flight instead of the one whose limit is reached',
    remedy: ABANDON,
    faulty: ['FORWARD TSN 0'],
    correct: ['DATA 0'],
    async observe(client) {
      await client.send('reliable', { stream: 1 });
      await client.send('lossy', { stream: 2, isLate: true });
      for (const text of ['a', 'b', 'c']) await client.send(text);
      client.taken();
      await client.reportAhead(2);
      return client.taken();
    },
  },
  {
    title: 'retransmits a message that has no retransmissions',
    remedy: ABANDON,
    faulty: ['DATA 0'],
    correct: ['FORWARD TSN 0'],
    async observe(client) {
      await client.send('lossy', { maxRetransmits: 0 });
      for (const text of ['a', 'b', 'c']) await client.send(text);
      client.taken();
      await client.reportAhead(1);
      return client.taken();
    },
  },
  {
    title: 'still sends the rest of a message that it has abandoned',
    remedy: ABANDON,
    faulty: ['FORWARD TSN 4', 'DATA 5', 'DATA 6'],
    correct: ['FORWARD TSN 7'],
    async observe(client) {
      await client.send(Buffer.alloc(8 * FRAGMENT), { isLate: true });
      await client.deliver(client.sack(-1, { ranges: [[1, 1]] }));
      await client.deliver(client.sack(-1, { ranges: [[1, 2]] }));
      client.taken();
      await client.deliver(client.sack(-1, { ranges: [[1, 3]] }));
      return client.taken();
    },
  },
  {
    title: 'sends FORWARD TSN once, even if it is not acknowledged',
    remedy: 'repeatForwardTsn (mended-sctp.ts)',
    faulty: [],
    correct: ['FORWARD TSN 0'],
    async observe(client) {
      await client.send('lossy', { isLate: true });
      for (const text of ['a', 'b', 'c', 'd']) await client.send(text);
      await client.reportAhead(1);
      client.taken();
      await client.deliver(client.sack(-1, { ranges: [[1, 4]] }));
      return client.taken();
    },
  },
  {
    title: 'stops sending after a timeout that follows acknowledgements out of order',
    remedy: 'countAgain (mended-sctp.ts)',
    faulty: [],
    correct: ['DATA 3'],
    async observe(client) {
      for (const bytes of [10, 100, FRAGMENT]) await client.send(Buffer.alloc(bytes));
      for (const last of [1, 2]) await client.deliver(client.sack(-1, { ranges: [[1, last]] }));
      await client.expire();
      await client.deliver(client.sack(2));
      client.taken();
      await client.send('next');
      return client.taken();
    },
  },
  {
    title: 'sends nothing into a closed window, even when nothing is in flight',
    remedy: 'the condition on peerRwnd in transmitQuickly (sctp-fast-path.ts)',
    faulty: [],
    correct: ['DATA 1'],
    async observe(client) {
      await client.send('a');
      await client.deliver(client.sack(0, { window: 0 }));
      client.taken();
      await client.send('probe');
      return client.taken();
    },
  },
];
