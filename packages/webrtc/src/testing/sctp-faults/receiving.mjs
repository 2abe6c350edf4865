// Faults of werift-sctp as the receiver of messages.
import { FIRST, FRAGMENT, LAST, UNORDERED, WHOLE } from './wire.mjs';

const SACK = 'sackPacket and gapsOf (sctp-fast-path.ts)';
const DELIVERY = 'popMessages (mended-sctp.ts)';
const BOUNDS = '#isWithinBounds (association.ts)';
/** Length of werift's largest packet with DATA, bytes. */
const FULL_PACKET = 28 + FRAGMENT;

/** @type {import('./index.mjs').Fault[]} */
export const RECEIVING = [
  {
    title: 'sorts TSNs as text, so it never acknowledges what arrives out of order around 10^9',
    remedy: 'markReceived (mended-sctp.ts)',
    initialTsn: 999_999_999,
    faulty: ['SACK -1, 1-1, 0-0'],
    correct: ['SACK 1'],
    async observe(client) {
      await client.deliver(client.data(1));
      client.taken();
      await client.deliver(client.data(0));
      return client.taken();
    },
  },
  {
    title: 'sends no acknowledgement with gaps where TSNs wrap around',
    remedy: SACK,
    initialTsn: 0xffff_ffff,
    faulty: [],
    correct: ['SACK -1, 2-2'],
    async observe(client) {
      await client.deliver(client.data(2));
      return client.taken();
    },
  },
  {
    title: 'sends no acknowledgement with gaps to a peer whose first TSN is 0',
    remedy: SACK,
    initialTsn: 0,
    faulty: [],
    correct: ['SACK -1, 1-1'],
    async observe(client) {
      await client.deliver(client.data(1));
      return client.taken();
    },
  },
  {
    title: 'sends acknowledgements larger than its packets with data, and so than a datagram of the network',
    remedy: SACK,
    faulty: false,
    correct: true,
    async observe(client) {
      // Every second chunk is lost.
      const packet = (from) => Array.from({ length: 50 }, (_, at) => client.data(from + 2 * at));
      for (let from = 1; from < 700; from += 100) await client.deliver(...packet(from));
      return Math.max(...client.takenSizes()) <= FULL_PACKET;
    },
  },
  {
    title: 'stops delivering waiting messages if other streams sent in between',
    remedy: DELIVERY,
    faulty: ['1', '3', '0'],
    correct: ['1', '3', '0', '2', '4'],
    async observe(client) {
      await client.deliver(client.data(1, { stream: 3, sequence: 0 }));
      await client.deliver(client.data(2, { stream: 1, sequence: 1 }));
      await client.deliver(client.data(3, { stream: 3, sequence: 1 }));
      await client.deliver(client.data(4, { stream: 1, sequence: 2 }));
      await client.deliver(client.data(0, { stream: 1, sequence: 0 }));
      return client.messages;
    },
  },
  {
    title: 'holds an unordered message back behind the beginning of another one',
    remedy: DELIVERY,
    faulty: [],
    correct: ['2'],
    async observe(client) {
      await client.deliver(client.data(0, { flags: UNORDERED | FIRST }));
      await client.deliver(client.data(2, { flags: UNORDERED | WHOLE }));
      return client.messages;
    },
  },
  {
    title: 'discards fragments of later messages when the peer abandons a message',
    remedy: 'skipGivenUp (mended-sctp.ts)',
    faulty: [],
    correct: ['123'],
    async observe(client) {
      await client.deliver(client.data(1, { flags: FIRST }));
      await client.deliver(client.data(2, { flags: 0 }));
      await client.deliver(client.forwardTsn(0, [[3, 0]]));
      await client.deliver(client.data(3, { flags: LAST }));
      return client.messages;
    },
  },
  {
    title: 'keeps data that the peer sends into a closed window',
    remedy: BOUNDS,
    faulty: 10,
    correct: 0,
    async observe(client) {
      // Slightly less than four fragments.
      client.end.sctp.advertisedRwnd = 4 * FRAGMENT - 100;
      const text = 'x'.repeat(FRAGMENT);
      let next = 0;
      const fragment = () => client.deliver(client.data(next, { flags: next++ === 0 ? FIRST : 0, text }));
      do await fragment();
      while (client.end.isUp() && (client.takenWindow() ?? 0) > 0);
      const kept = next;
      for (let more = 0; more < 10; more++) await fragment();
      const last = client
        .taken()
        .filter((each) => each.startsWith('SACK'))
        .at(-1);
      return last === undefined ? 0 : Number(last.split(/[ ,]/)[1]) + 1 - kept;
    },
  },
  {
    title: 'takes messages on streams that were not negotiated',
    remedy: 'the bound on stream numbers in isSafePacket (sctp-packet.ts)',
    streams: 16,
    faulty: ['0'],
    correct: [],
    async observe(client) {
      await client.deliver(client.data(0, { stream: 40_000 }));
      return client.messages;
    },
  },
  {
    title: 'processes a packet while it is still busy with the one before, and reports received data as lost',
    remedy: '#isTaking and #behind (association.ts)',
    faulty: ['SACK 1, 3-3', 'SACK 3'],
    correct: ['SACK 2', 'SACK 3'],
    async observe(client) {
      const of = (offset) => client.data(offset, { sequence: offset });
      await Promise.all([client.deliver(of(0), of(1), of(2)), client.deliver(of(3))]);
      return client.taken();
    },
  },
];
