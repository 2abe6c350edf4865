// The client's side of an association, one packet at a time, for scenarios that need exact packets in an exact order.
import { setImmediate as turn } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { crc32c } from 'werift-sctp/lib/common/src/crc.js';

/**
 * The association under test. It is the server.
 * @typedef {object} End
 * @property {any} sctp werift's association
 * @property {(packet: Buffer) => unknown} receive takes a packet; resolves when it is processed, if that takes promises
 * @property {(packet: Buffer) => unknown} carry takes a packet as its transport hands it over
 * @property {(stream: number, data: Buffer, kind: Kind) => void} send
 * @property {(stream: number) => void} reset
 * @property {() => boolean} isUp
 * @property {() => unknown} close
 * @property {number} patienceMs time that one packet may take
 *
 * @typedef {object} Handlers
 * @property {(packet: Buffer) => void} send
 * @property {(message: Buffer) => void} onMessage
 * @property {(streams: readonly number[]) => void} onReset called when the client has reset streams
 *
 * @typedef {{ maxRetransmits?: number, isLate?: boolean }} Kind `isLate`: the deadline of the message has passed
 * @typedef {(handlers: Handlers) => End} Open
 */

const CHUNKS = new Map([
  [0, 'DATA'],
  [1, 'INIT'],
  [2, 'INIT ACK'],
  [3, 'SACK'],
  [6, 'ABORT'],
  [9, 'ERROR'],
  [11, 'COOKIE ACK'],
  [130, 'RECONFIG'],
  [192, 'FORWARD TSN'],
]);
/** Flags of DATA. */
export const LAST = 1;
export const FIRST = 2;
export const WHOLE = 3;
export const UNORDERED = 4;
/** Message bytes in one werift packet. */
export const FRAGMENT = 1_200;

const STATE_COOKIE = 7;
const RESET_REQUEST = 13;
const RESET_RESPONSE = 16;
const CLIENT_TAG = 0x1234_5678;
const WINDOW = 1_000_000;

/** Returns a chunk, padded to four bytes (RFC 9260 section 3.2). */
export function chunk(type, flags, body) {
  const out = Buffer.alloc((4 + body.length + 3) & ~3);
  out.writeUInt8(type, 0);
  out.writeUInt8(flags, 1);
  out.writeUInt16BE(4 + body.length, 2);
  body.copy(out, 4);
  return out;
}

/** Returns the fields in network order, 'H' for 16 bits and 'L' for 32. */
function pack(format, ...values) {
  return Buffer.concat(
    values.map((value, at) => {
      const field = Buffer.alloc(format[at] === 'H' ? 2 : 4);
      if (format[at] === 'H') field.writeUInt16BE(value);
      else field.writeUInt32BE(value >>> 0);
      return field;
    }),
  );
}

export const ABORT = chunk(6, 0, Buffer.alloc(0));

/** TSNs are given and reported as offsets from their sender's first TSN. */
export class Client {
  /** @type {string[]} */
  messages = [];
  /** Streams whose reset by the client the server has reported. @type {number[]} */
  resets = [];
  /** @type {Buffer[]} */
  #sent = [];
  #serverTag = 0;
  #serverTsn = 0;

  /** @param {Open} open */
  constructor(open, { initialTsn = 1_000, streams = 1_024 } = {}) {
    this.initialTsn = initialTsn;
    this.streams = streams;
    this.end = open({
      send: (packet) => this.#sent.push(Buffer.from(packet)),
      onMessage: (message) => this.messages.push(message.toString()),
      onReset: (reset) => this.resets.push(...reset),
    });
    // Timers expire only when a scenario says so, however slow the machine is.
    Object.defineProperty(this.end.sctp, 'rto', { get: () => 3_600, set() {} });
  }

  /** @param {Open} open @param {{ initialTsn?: number, streams?: number }} [options] */
  static async connected(open, options) {
    const client = new Client(open, options);
    await client.deliver(client.cookieEcho(await client.init()));
    if (!client.end.isUp()) throw new Error('no association');
    client.taken();
    return client;
  }

  /** Sends INIT. Returns the cookie of the answer (RFC 9260 section 5.1). */
  async init() {
    const body = pack('LLHHL', CLIENT_TAG, WINDOW, this.streams, this.streams, this.initialTsn);
    await this.#receive(packet(0, [chunk(1, 0, body)]));
    const answer = this.#sent.find((each) => each[12] === 2);
    if (answer === undefined) throw new Error('INIT is not answered');
    if (this.#serverTag === 0) {
      this.#serverTag = answer.readUInt32BE(16);
      this.#serverTsn = answer.readUInt32BE(28);
    }
    for (let at = 32; at < answer.length; at += (answer.readUInt16BE(at + 2) + 3) & ~3) {
      const value = answer.subarray(at + 4, at + answer.readUInt16BE(at + 2));
      if (answer.readUInt16BE(at) === STATE_COOKIE) return value;
    }
    throw new Error('INIT ACK has no cookie');
  }

  cookieEcho(cookie) {
    return chunk(10, 0, cookie);
  }

  data(offset, { flags = WHOLE, stream = 1, sequence = 0, text = String(offset) } = {}) {
    const header = pack('LHHL', this.initialTsn + offset, stream, sequence, 51);
    return chunk(0, flags, Buffer.concat([header, Buffer.from(text)]));
  }

  /** Acknowledges the server's chunks up to `until` and in the ranges. */
  sack(until, { ranges = [], window = WINDOW } = {}) {
    const gaps = ranges.map(([from, to]) => pack('HH', from - until, to - until));
    return chunk(3, 0, Buffer.concat([pack('LLHH', this.#serverTsn + until, window, gaps.length, 0), ...gaps]));
  }

  forwardTsn(until, streams) {
    const skipped = streams.map(([stream, sequence]) => pack('HH', stream, sequence));
    return chunk(192, 0, Buffer.concat([pack('L', this.initialTsn + until), ...skipped]));
  }

  /** The client's first reset (RFC 6525 section 4.1). `last` is the offset of its last DATA. */
  resetRequest(last, stream) {
    const body = pack('HHLLLH', RESET_REQUEST, 18, this.initialTsn, 0, this.initialTsn + last, stream);
    return chunk(130, 0, body);
  }

  /** Confirms the server's first reset (section 4.4). */
  resetResponse() {
    return chunk(130, 0, pack('HHLL', RESET_RESPONSE, 12, this.#serverTsn, 1));
  }

  /** Sends the chunks in one packet. Resolves when the server has processed it. */
  async deliver(...chunks) {
    await this.#receive(packet(this.#serverTag, chunks));
  }

  /** Sends a packet with a wrong checksum, as a transport hands it over. */
  async malformed() {
    const bytes = packet(this.#serverTag, [ABORT]);
    bytes[8] ^= 1;
    this.end.carry(bytes);
    await turn();
  }

  /** Returns false if the packet keeps the server busy for longer than allowed. */
  isQuick(...chunks) {
    const bytes = packet(this.#serverTag, chunks);
    // Rejecting the packet must be quick, too.
    const call = () => void Promise.resolve(this.end.receive(bytes)).catch(() => undefined);
    try {
      runInNewContext('call()', { call }, { timeout: this.end.patienceMs });
      return true;
    } catch (error) {
      if (error?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
      throw error;
    }
  }

  async #receive(bytes) {
    await this.end.receive(bytes);
    await turn();
  }

  /** Makes the server send a message. */
  async send(data, { stream = 1, ...kind } = {}) {
    this.end.send(stream, Buffer.from(data), kind);
    await turn();
  }

  async reset(stream) {
    this.end.reset(stream);
    await turn();
  }

  /** Reports three messages, one after the other, so that the earlier ones count as lost (RFC 9260 section 7.2.4). */
  async reportAhead(first) {
    for (const last of [first, first + 1, first + 2]) await this.deliver(this.sack(-1, { ranges: [[first, last]] }));
  }

  /** Lets the server's retransmission timer expire. */
  async expire() {
    const { sctp } = this.end;
    clearTimeout(sctp.timer3Handle);
    sctp.timer3Expired();
    await turn();
  }

  /** Returns the sizes in bytes of the packets that the server has sent since the last call. */
  takenSizes() {
    return this.#sent.splice(0).map(({ length }) => length);
  }

  /** Describes the packets that the server has sent since the last call. */
  taken() {
    return this.#sent.splice(0).map((each) => this.#describe(each));
  }

  #describe(sent) {
    const type = sent[12];
    const name = CHUNKS.get(type) ?? `chunk ${type}`;
    if (type === 0 || type === 192) return `${name} ${signed(sent.readUInt32BE(16) - this.#serverTsn)}`;
    if (type === 3) {
      const until = signed(sent.readUInt32BE(16) - this.initialTsn);
      const gaps = Array.from({ length: sent.readUInt16BE(24) }, (_, gap) =>
        [28, 30].map((at) => until + sent.readUInt16BE(at + 4 * gap)).join('-'),
      );
      return [`${name} ${until}`, ...gaps].join(', ');
    }
    if (type !== 130) return name;
    return sent.readUInt16BE(16) === RESET_REQUEST ? `reset of ${sent.readUInt16BE(32)}` : 'reset response';
  }

  /** Returns the window of the last SACK in bytes, or undefined without one. Clears the recorded packets. */
  takenWindow() {
    return this.#sent
      .splice(0)
      .findLast((each) => each[12] === 3)
      ?.readUInt32BE(20);
  }

  async close() {
    await this.end.close();
  }
}

function packet(tag, chunks) {
  const out = Buffer.concat([pack('HHLL', 5_000, 5_000, tag, 0), ...chunks]);
  out.writeUInt32LE(crc32c(out), 8);
  return out;
}

/** Returns the signed difference of two TSNs. */
function signed(difference) {
  return difference | 0;
}
