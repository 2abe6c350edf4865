import { randomBytes, sign } from 'node:crypto';
import type { Identity } from '../dtls/certificate.js';
import { Extension } from '../dtls/client-hello.js';
import { HANDSHAKE_HEADER, handshakeMessage, HandshakeType, readFragments } from '../dtls/handshake-messages.js';
import { Group, createKeyExchange } from '../dtls/key-exchange.js';
import { extendedMasterSecret, type RecordKeys, recordKeys, verifyData } from '../dtls/key-schedule.js';
import { decryptRecord, encryptRecord } from '../dtls/record-cipher.js';
import { ContentType, DTLS_1_2, plainRecord, readRecords } from '../dtls/records.js';
import { u16, u8, vector, WireReader } from '../dtls/wire.js';

/**
 * A minimal DTLS client that exercises our server: it trusts any server, needs unfragmented messages and never
 * retransmits.
 */
export class HandshakeClient {
  readonly #identity: Identity;
  readonly #exchange = createKeyExchange(Group.x25519);
  readonly #random = randomBytes(32);
  readonly #hello: Buffer;
  #keys: { client: RecordKeys; server: RecordKeys } | undefined;
  /** Number of the next encrypted record. */
  #sequence = 0;

  constructor(identity: Identity) {
    this.#identity = identity;
    const extension = (type: number, data: Buffer) => Buffer.concat([u16(type), vector(2, data)]);
    const body = Buffer.concat([
      u16(DTLS_1_2),
      this.#random,
      vector(1),
      vector(1),
      vector(2, u16(0xc02b)),
      vector(1, u8(0)),
      vector(
        2,
        extension(Extension.supportedGroups, vector(2, u16(Group.x25519))),
        extension(Extension.signatureAlgorithms, vector(2, u16(0x0403))),
        extension(Extension.useSrtp, Buffer.concat([vector(2, u16(1)), vector(1)])),
        extension(Extension.extendedMasterSecret, Buffer.alloc(0)),
      ),
    ]);
    this.#hello = handshakeMessage(HandshakeType.clientHello, 0, body);
  }

  /** Returns the first datagram. */
  hello(): Buffer {
    return plainRecord(ContentType.handshake, 0, this.#hello);
  }

  /** Returns the answer to the server's first flight, in one datagram. */
  answer(flight: Buffer): Buffer {
    const messages = (readRecords(flight) ?? []).flatMap(({ fragment }) =>
      (readFragments(fragment) ?? []).map((one) => handshakeMessage(one.type, one.messageSeq, one.data)),
    );
    const body = (type: number): Buffer =>
      messages.find((message) => message[0] === type)?.subarray(HANDSHAKE_HEADER) ?? Buffer.alloc(0);
    // Skip the server version before the random, and curve type and curve before the public key.
    const serverRandom = body(HandshakeType.serverHello).subarray(2, 34);
    const theirs = new WireReader(body(HandshakeType.serverKeyExchange).subarray(3)).vector(1);

    const certificate = handshakeMessage(HandshakeType.certificate, 1, vector(3, vector(3, this.#identity.der)));
    const key = handshakeMessage(HandshakeType.clientKeyExchange, 2, vector(1, this.#exchange.publicKey));
    const transcript = [this.#hello, ...messages, certificate, key];
    const preMaster = this.#exchange.secret(theirs);
    if (preMaster === undefined) throw new Error('the server sent no usable key');
    const master = extendedMasterSecret(preMaster, transcript);
    const signature = sign('sha256', Buffer.concat(transcript), this.#identity.key);
    const proof = handshakeMessage(HandshakeType.certificateVerify, 3, u16(0x0403), vector(2, signature));
    const finished = handshakeMessage(HandshakeType.finished, 4, verifyData(master, 'client', [...transcript, proof]));
    this.#keys = recordKeys(master, { client: this.#random, server: serverRandom });
    return Buffer.concat([
      ...[certificate, key, proof].map((message, i) => plainRecord(ContentType.handshake, 1 + i, message)),
      plainRecord(ContentType.changeCipherSpec, 4, u8(1)),
      this.#encrypt(ContentType.handshake, finished),
    ]);
  }

  /** Returns a datagram with one packet of data. */
  seal(packet: Buffer): Buffer {
    return this.#encrypt(ContentType.applicationData, packet);
  }

  /** Returns the packet of data in a datagram of the server; undefined for any other datagram. */
  open(datagram: Buffer): Buffer | undefined {
    const [record] = readRecords(datagram) ?? [];
    if (this.#keys === undefined || record?.type !== ContentType.applicationData) return undefined;

    return decryptRecord(this.#keys.server, record);
  }

  #encrypt(type: number, plain: Buffer): Buffer {
    if (this.#keys === undefined) throw new Error('no keys have been agreed');
    return encryptRecord(this.#keys.client, type, this.#sequence++, plain);
  }
}
