// Faults of werift-sctp in its handshake, in resets of streams, and on hostile packets.
import { ABORT, chunk } from './wire.mjs';

const RESETS = '#requested (stream-resets.ts)';

/** @type {import('./index.mjs').Fault[]} */
export const ASSOCIATION = [
  {
    title: 'resets half of its state when an INIT is repeated on an established association',
    remedy: 'the check of INIT in isSafePacket (sctp-packet.ts)',
    faulty: ['SACK -1, 1-1'],
    correct: ['SACK 1'],
    async observe(client) {
      await client.deliver(client.data(0));
      await client.init().catch(() => undefined);
      client.taken();
      await client.deliver(client.data(1, { sequence: 1 }));
      return client.taken();
    },
  },
  {
    title: 'restarts an association when a COOKIE ECHO follows the chunk that ended it',
    remedy: 'stayClosed (mended-sctp.ts)',
    isNew: true,
    faulty: 'connected',
    correct: 'closed',
    async observe(client) {
      const cookie = await client.init();
      await client.deliver(ABORT, client.cookieEcho(cookie));
      return client.end.sctp.state;
    },
  },
  {
    title: 'repeats its reset of a stream when the reset of its peer crosses it',
    remedy: RESETS,
    faulty: ['reset of 4', 'reset response', 'reset of 4'],
    correct: ['reset of 4', 'reset response'],
    async observe(client) {
      await client.send('a', { stream: 4 });
      await client.deliver(client.sack(0));
      client.taken();
      await client.reset(4);
      await client.deliver(client.resetRequest(-1, 4));
      await client.deliver(client.resetResponse());
      return client.taken();
    },
  },
  {
    title: 'carries a repeated reset out again, and so loses the messages of the next channel',
    remedy: RESETS,
    faulty: ['0', '1'],
    correct: ['0', '1', '2'],
    async observe(client) {
      await client.deliver(client.data(0));
      await client.deliver(client.resetRequest(0, 1));
      await client.deliver(client.data(1));
      await client.deliver(client.resetRequest(0, 1));
      await client.deliver(client.data(2, { sequence: 1 }));
      return client.messages;
    },
  },
  {
    title: 'carries a reset out before earlier messages have arrived, and so loses them',
    remedy: RESETS,
    faulty: ['0'],
    correct: ['0', '1', '2'],
    async observe(client) {
      await client.deliver(client.data(0));
      await client.deliver(client.data(2, { sequence: 2 }));
      await client.deliver(client.resetRequest(2, 1));
      await client.deliver(client.data(1, { sequence: 1 }));
      await client.deliver(client.resetRequest(2, 1));
      return client.messages;
    },
  },
  {
    title: 'reports the response to its own reset as a reset by its peer',
    remedy: RESETS,
    faulty: [4],
    correct: [],
    async observe(client) {
      await client.reset(4);
      await client.deliver(client.resetResponse());
      return client.resets;
    },
  },
  {
    title: 'reads a parameter of zero length forever',
    remedy: 'areSafeParameters (sctp-packet.ts)',
    faulty: false,
    correct: true,
    async observe(client) {
      return client.isQuick(chunk(4, 0, Buffer.of(0, 1, 0, 0)));
    },
  },
  {
    title: 'spends seconds on an acknowledgement of millions of messages that it never sent',
    remedy: 'isSafeSack (sctp-packet.ts)',
    faulty: false,
    correct: true,
    async observe(client) {
      await client.send('a');
      return client.isQuick(client.sack(-1, { ranges: Array.from({ length: 490 }, () => [1, 65_534]) }));
    },
  },
  {
    title: 'leaves the rejection unhandled when its transport receives a malformed packet',
    remedy: 'the catch in #take (association.ts)',
    faulty: 'unhandled',
    correct: 'handled',
    async observe(client) {
      const { sctp } = client.end;
      const handle = sctp.handleData.bind(sctp);
      let outcome = 'handled';
      sctp.handleData = (packet) => {
        const taken = handle(packet);
        // A caller that handles a rejection uses the promise before the next step.
        let isWatched = false;
        taken.catch(() => (outcome = isWatched ? 'handled' : 'unhandled'));
        return new Proxy(taken, {
          get(promise, name) {
            isWatched = true;
            return promise[name].bind(promise);
          },
        });
      };
      await client.malformed();
      return outcome;
    },
  },
];
