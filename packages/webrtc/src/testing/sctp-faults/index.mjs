// Faults of werift-sctp that Bloom works around, each as a scenario of packets: docs/reference/werift-sctp.md.
import { isDeepStrictEqual } from 'node:util';
import { ASSOCIATION } from './association.mjs';
import { RECEIVING } from './receiving.mjs';
import { SENDING } from './sending.mjs';
import { Client } from './wire.mjs';

/**
 * @typedef {object} Fault
 * @property {string} title what the package does wrong, after the words "werift-sctp"
 * @property {string} remedy code of ours that exists because of it
 * @property {(client: Client) => Promise<unknown>} observe returns what the scenario led to
 * @property {unknown} faulty what the package shows
 * @property {unknown} correct what the standards demand
 * @property {number} [initialTsn] the client's first TSN
 * @property {number} [streams] streams that the client negotiates
 * @property {boolean} [isNew] true to begin before the handshake
 */

/** @type {readonly Fault[]} */
export const FAULTS = [...SENDING, ...RECEIVING, ...ASSOCIATION];

/**
 * Plays the scenario of a fault. Returns its outcome.
 * @param {Fault} fault
 * @param {import('./wire.mjs').Open} open
 */
export async function play({ observe, isNew, initialTsn, streams }, open) {
  const options = { initialTsn, streams };
  const client = isNew === true ? new Client(open, options) : await Client.connected(open, options);
  try {
    return await observe(client);
  } finally {
    await client.close();
  }
}

/**
 * Returns what a version of the package does: `shown`, `fixed`, or how else it behaves.
 * @param {Fault} fault
 * @param {typeof import('werift-sctp').SCTP} SCTP
 */
export async function verdict(fault, SCTP) {
  let seen;
  try {
    seen = await play(fault, published(SCTP));
  } catch (error) {
    return `fails: ${error}`;
  }
  if (isDeepStrictEqual(seen, fault.faulty)) return 'shown';
  return isDeepStrictEqual(seen, fault.correct) ? 'fixed' : `neither faulty nor correct: ${JSON.stringify(seen)}`;
}

/**
 * The package without our replacements.
 * @param {typeof import('werift-sctp').SCTP} SCTP
 * @returns {import('./wire.mjs').Open}
 */
export function published(SCTP) {
  return ({ send, onMessage, onReset }) => {
    /** @type {{ send(packet: Buffer): Promise<void>, close(): void, onData?: (packet: Buffer) => unknown }} */
    const transport = { send: async (packet) => send(packet), close: () => undefined };
    const sctp = SCTP.server(transport, 5_000);
    sctp.onReceive.subscribe((_stream, _protocol, data) => onMessage(data));
    sctp.onReconfigStreams.subscribe(onReset);
    void sctp.start(5_000);
    return {
      sctp,
      receive: (packet) => sctp.handleData(packet),
      carry: (packet) => transport.onData?.(packet),
      send: (stream, data, { maxRetransmits, isLate }) =>
        void sctp.send(stream, 51, data, { ordered: true, maxRetransmits, expiry: isLate === true ? 1 : undefined }),
      reset: (stream) => {
        sctp.reconfigQueue.push(stream);
        void sctp.transmitReconfigRequest();
      },
      isUp: () => sctp.state === 'connected',
      close: () => sctp.stop(),
      patienceMs: 50,
    };
  };
}
