import { randomBytes, sign, timingSafeEqual } from 'node:crypto';
import type { Identity } from './certificate.js';
import {
  type ClientHello,
  Extension,
  readClientHello,
  CIPHER_SUITE,
  ECDSA_SHA256,
  NAMED_CURVE,
  NO_COMPRESSION,
  SIGNATURES,
  SRTP_PROFILE,
  UNCOMPRESSED,
} from './client-hello.js';
import { HANDSHAKE_HEADER, handshakeMessage, HandshakeType } from './handshake-messages.js';
import { chooseGroup, Group, type KeyExchange, createKeyExchange } from './key-exchange.js';
import {
  extendedMasterSecret,
  masterSecret,
  recordKeys,
  type SrtpKeyMaterial,
  srtpKeys,
  verifyData,
} from './key-schedule.js';
import type { FlightRecord, RecordLayer } from './record-layer.js';
import { ContentType, DTLS_1_2 } from './records.js';
import { u16, u8, vector, WireReader } from './wire.js';

const CLIENT_KEY_TYPES = Buffer.of(64, 1);

/**
 * The server side of one DTLS 1.2 handshake (RFC 6347 section 4.2, RFC 5246 section 7): whole messages in, flights out.
 * The caller handles ordering and retransmission, and decides what the client must prove.
 *
 * There is no cookie: DTLS is only accepted from addresses that passed a connectivity check.
 */
export class ServerHandshake {
  readonly #identity: Identity;
  /** Messages with headers, starting with the ClientHello. */
  #transcript: Buffer[] = [];
  #hello: ClientHello | undefined;
  #serverRandom: Buffer = Buffer.alloc(0);
  #exchange: KeyExchange | undefined;
  #master: Buffer | undefined;
  readonly #records: RecordLayer;
  /** Client certificate in DER; empty if the client sent none. */
  clientCertificate: Buffer | undefined;
  #proof: { before: number; message: Buffer } | undefined;

  constructor(identity: Identity, records: RecordLayer) {
    this.#identity = identity;
    this.#records = records;
  }

  /** CertificateVerify, and the messages before it. */
  get proof(): { transcript: Buffer; message: Buffer } | undefined {
    const proof = this.#proof;
    return proof && { transcript: Buffer.concat(this.#transcript.slice(0, proof.before)), message: proof.message };
  }

  /** SRTP keys; available only after the handshake. */
  get srtpKeys(): SrtpKeyMaterial {
    if (this.#master === undefined) throw new Error('no handshake has taken place');
    return srtpKeys(this.#master, this.#randoms);
  }

  /** Starts or restarts with a ClientHello. Returns the flight to send, or the reason why the hello was refused. */
  begin(message: Buffer): FlightRecord[] | string {
    const hello = readClientHello(message.subarray(HANDSHAKE_HEADER));
    if (hello === undefined) return 'the client sent a malformed hello';
    const reason = objectionTo(hello);
    if (reason !== undefined) return reason;
    // A client without a group list accepts any group (RFC 8422 section 4).
    const group = chooseGroup(hello.groups ?? [Group.secp256r1]);
    if (group === undefined) return 'the client offers neither X25519 nor P-256';
    this.#hello = hello;
    this.#serverRandom = randomBytes(32);
    this.#exchange = createKeyExchange(group);
    this.#master = undefined;
    this.#records.keys = undefined;
    this.#proof = undefined;
    this.clientCertificate = undefined;
    const flight = [
      handshakeMessage(HandshakeType.serverHello, 0, this.#serverHello(hello)),
      handshakeMessage(HandshakeType.certificate, 1, vector(3, vector(3, this.#identity.der))),
      handshakeMessage(HandshakeType.serverKeyExchange, 2, this.#keyExchange(this.#exchange)),
      handshakeMessage(
        HandshakeType.certificateRequest,
        3,
        vector(1, CLIENT_KEY_TYPES),
        vector(2, u16(...SIGNATURES)),
        vector(2),
      ),
      handshakeMessage(HandshakeType.serverHelloDone, 4),
    ];
    this.#transcript = [message, ...flight];
    return flight.map((body) => ({ type: ContentType.handshake, sealed: false, body }));
  }

  /** Adds Certificate, ClientKeyExchange or CertificateVerify, in this order. Returns false if it is invalid. */
  add(message: Buffer): boolean {
    const body = message.subarray(HANDSHAKE_HEADER);
    const before = this.#transcript.length;
    this.#transcript.push(message);
    switch (message[0]) {
      case HandshakeType.certificate: {
        const list = new WireReader(new WireReader(body).vector(3));
        this.clientCertificate = list.vector(3);
        return true;
      }
      case HandshakeType.clientKeyExchange:
        return this.#agree(new WireReader(body).vector(1));
      case HandshakeType.certificateVerify:
        this.#proof = { before, message };
        return true;
      default:
        return false;
    }
  }

  /** Returns true if this is the Finished of a client that saw the same handshake (RFC 5246 section 7.4.9). */
  isFinished(message: Buffer): boolean {
    if (this.#master === undefined) return false;
    const expected = verifyData(this.#master, 'client', this.#transcript);
    const given = message.subarray(HANDSHAKE_HEADER);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  /** Returns the answer to a verified client Finished: ChangeCipherSpec and our Finished. */
  finish(finished: Buffer): FlightRecord[] {
    if (this.#master === undefined) throw new Error('no keys have been agreed');
    this.#transcript.push(finished);
    const body = verifyData(this.#master, 'server', this.#transcript);
    this.#transcript = [];
    this.#exchange = undefined;
    return [
      { type: ContentType.changeCipherSpec, sealed: false, body: u8(1) },
      { type: ContentType.handshake, sealed: true, body: handshakeMessage(HandshakeType.finished, 5, body) },
    ];
  }

  get #randoms(): { client: Buffer; server: Buffer } {
    return { client: this.#hello?.random ?? Buffer.alloc(0), server: this.#serverRandom };
  }

  #agree(theirs: Buffer): boolean {
    const preMaster = this.#exchange?.secret(theirs);
    if (preMaster === undefined) return false;
    this.#master = this.#hello?.extendedMasterSecret
      ? extendedMasterSecret(preMaster, this.#transcript)
      : masterSecret(preMaster, this.#randoms);
    const { client, server } = recordKeys(this.#master, this.#randoms);
    this.#records.keys = { ours: server, theirs: client };
    return true;
  }

  #serverHello(hello: ClientHello): Buffer {
    const extensions: Buffer[] = [];
    const extension = (type: number, data: Buffer) => extensions.push(u16(type), vector(2, data));
    if (hello.secureRenegotiation) extension(Extension.renegotiationInfo, vector(1));
    if (hello.extendedMasterSecret) extension(Extension.extendedMasterSecret, Buffer.alloc(0));
    if (hello.pointFormats !== undefined) extension(Extension.pointFormats, vector(1, u8(UNCOMPRESSED)));
    // One profile, and an empty master key identifier.
    extension(Extension.useSrtp, Buffer.concat([vector(2, u16(SRTP_PROFILE)), vector(1)]));
    return Buffer.concat([
      u16(DTLS_1_2),
      this.#serverRandom,
      vector(1),
      u16(CIPHER_SUITE),
      u8(NO_COMPRESSION),
      vector(2, ...extensions),
    ]);
  }

  /** Returns our public key, signed together with the randoms by our certificate's key (RFC 8422 section 5.4). */
  #keyExchange({ group, publicKey }: KeyExchange): Buffer {
    const parameters = Buffer.concat([u8(NAMED_CURVE), u16(group), vector(1, publicKey)]);
    const { client, server } = this.#randoms;
    const signature = sign('sha256', Buffer.concat([client, server, parameters]), this.#identity.key);
    return Buffer.concat([parameters, u16(ECDSA_SHA256), vector(2, signature)]);
  }
}

function objectionTo(hello: ClientHello): string | undefined {
  if (hello.version !== DTLS_1_2 || hello.supportedVersions?.includes(DTLS_1_2) === false) {
    return 'the client does not support DTLS 1.2';
  }
  if (!hello.cipherSuites.includes(CIPHER_SUITE) || !hello.compressionMethods.includes(NO_COMPRESSION)) {
    return 'the client does not support TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256';
  }
  if (hello.signatureAlgorithms?.includes(ECDSA_SHA256) === false)
    return 'the client does not support ECDSA with SHA-256';
  if (hello.pointFormats?.includes(UNCOMPRESSED) === false) return 'the client does not support uncompressed points';
  if (hello.srtpProfiles?.includes(SRTP_PROFILE) !== true) {
    return 'the client does not support SRTP_AES128_CM_HMAC_SHA1_80';
  }
  return undefined;
}
