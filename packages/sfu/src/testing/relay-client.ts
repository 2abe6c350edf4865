/** Just enough of a TURN client over TCP (RFC 8656) to see where an allocation ends up. */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import type { RelayCredentials } from '../media-engine.js';
import { attribute, STUN_COOKIE } from './wire-client.js';

const ALLOCATE = 0x0003;
const ALLOCATE_SUCCESS = 0x0103;
const USERNAME = 0x0006;
const INTEGRITY = 0x0008;
const REALM = 0x0014;
const NONCE = 0x0015;
const REQUESTED_TRANSPORT = 0x0019;

export class RelayClient {
  readonly #socket: Socket;
  /** Resolves once the server has hung up. */
  readonly closed: Promise<boolean>;
  #received: Buffer = Buffer.alloc(0);
  #waiting: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => socket.once('close', () => resolve(true)));
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#waiting?.();
    });
  }

  static async connect(address: string, port: number): Promise<RelayClient> {
    const socket = connect(port, address);
    await once(socket, 'connect');
    return new RelayClient(socket);
  }

  /** Provokes the challenge and answers it. */
  async allocate({ username, password }: RelayCredentials): Promise<'allocated' | 'refused'> {
    const transport = attribute(REQUESTED_TRANSPORT, Buffer.from([17, 0, 0, 0]));
    const challenge = await this.#request(transport);
    if (challenge === undefined) return 'refused';
    const realm = find(challenge, REALM);
    const nonce = find(challenge, NONCE);
    const key = createHash('md5').update(`${username}:${realm.toString()}:${password}`).digest();
    const attributes = [
      transport,
      attribute(USERNAME, Buffer.from(username)),
      attribute(REALM, realm),
      attribute(NONCE, nonce),
    ];
    const answer = await this.#request(Buffer.concat(attributes), key);
    if (answer === undefined || answer.readUInt16BE(0) !== ALLOCATE_SUCCESS) {
      this.#socket.destroy();
      return 'refused';
    }
    return 'allocated';
  }

  /** Sends one request and returns its answer, or undefined if the connection ends instead. */
  async #request(attributes: Buffer, key?: Buffer): Promise<Buffer | undefined> {
    const header = Buffer.alloc(20);
    header.writeUInt16BE(ALLOCATE, 0);
    header.writeUInt16BE(attributes.length + (key === undefined ? 0 : 24), 2);
    header.writeUInt32BE(STUN_COOKIE, 4);
    randomBytes(12).copy(header, 8);
    const parts = [header, attributes];
    if (key !== undefined) {
      parts.push(attribute(INTEGRITY, createHmac('sha1', key).update(header).update(attributes).digest()));
    }
    this.#socket.write(Buffer.concat(parts));
    const ended = this.closed.then(() => undefined);
    for (;;) {
      const length = this.#received.length < 20 ? undefined : 20 + this.#received.readUInt16BE(2);
      if (length !== undefined && this.#received.length >= length) {
        const answer = this.#received.subarray(0, length);
        this.#received = this.#received.subarray(length);
        return answer;
      }
      const more = new Promise<true>((resolve) => (this.#waiting = () => resolve(true)));
      if ((await Promise.race([more, ended])) === undefined) return undefined;
    }
  }
}

function find(message: Buffer, type: number): Buffer {
  for (let at = 20; at + 4 <= message.length; ) {
    const length = message.readUInt16BE(at + 2);
    if (message.readUInt16BE(at) === type) return message.subarray(at + 4, at + 4 + length);
    at += 4 + Math.ceil(length / 4) * 4;
  }
  throw new Error(`the answer has no attribute ${type}`);
}
