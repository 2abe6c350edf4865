import { randomBytes, sign, timingSafeEqual } from 'node:crypto';
import type { Identity } from './certificate.js';
import {
  Extension,
  readExtensions,
  CIPHER_SUITE,
  ECDSA_SHA256,
  NAMED_CURVE,
  NO_COMPRESSION,
  SIGNATURES,
  SRTP_PROFILE,
  UNCOMPRESSED,
} from './client-hello.js';
import { type Fingerprint, isSignedBy, matchesFingerprint } from './client-proof.js';
import { HANDSHAKE_HEADER, handshakeMessage, HandshakeType } from './handshake-messages.js';
import { createKeyExchange, Group } from './key-exchange.js';
import { extendedMasterSecret, recordKeys, type SrtpKeyMaterial, srtpKeys, verifyData } from './key-schedule.js';
import type { FlightRecord, RecordLayer } from './record-layer.js';
import { ContentType, DTLS_1_2 } from './records.js';
import { numbers16, u16, u8, vector, WireReader } from './wire.js';

const RANDOM_BYTES = 32;
/** The server's flight. Servers of WebRTC always ask for the client's certificate. */
export const SERVER_FLIGHT: readonly number[] = [
  HandshakeType.serverHello,
  HandshakeType.certificate,
  HandshakeType.serverKeyExchange,
  HandshakeType.certificateRequest,
  HandshakeType.serverHelloDone,
];

/**
 * The client side of one DTLS 1.2 handshake (RFC 6347 section 4.2, RFC 5246 section 7): whole messages in, flights out.
 * The caller handles ordering and retransmission. The server must support the extended master secret (RFC 7627).
 */
export class ClientHandshake {
  readonly #identity: Identity;
  readonly #records: RecordLayer;
  readonly #random = randomBytes(RANDOM_BYTES);
  /** By message number: the first one, and the last one that returned a cookie. */
  readonly #hellos: Buffer[] = [];
  #serverRandom: Buffer = Buffer.alloc(0);
  #master: Buffer | undefined;
  /** Messages with headers, starting with the ClientHello that the server answered. */
  #transcript: Buffer[] = [];
  /** The server's certificate in DER, once it was found to be the announced one, with the key that signed. */
  certificate: Buffer | undefined;
  /** Signatures that were verified, which is what a flight may cost. */
  verified = 0;

  constructor(identity: Identity, records: RecordLayer) {
    this.#identity = identity;
    this.#records = records;
  }

  /** SRTP keys; available only after the handshake. */
  get srtpKeys(): SrtpKeyMaterial {
    if (this.#master === undefined) throw new Error('no handshake has taken place');
    const keys = srtpKeys(this.#master, this.#randoms);
    return {
      localKey: keys.remoteKey,
      localSalt: keys.remoteSalt,
      remoteKey: keys.localKey,
      remoteSalt: keys.localSalt,
    };
  }

  /** Returns true if a hello with this message number was sent. */
  hasSaid(messageSeq: number): boolean {
    return this.#hellos[messageSeq] !== undefined;
  }

  /**
   * Returns the first flight, or the one that answers a server that wants its cookie back. Such a server keeps nothing
   * until then: for a further cookie, the hello has the same number (RFC 6347 section 4.2.1).
   */
  hello(cookie?: Buffer): FlightRecord[] {
    const messageSeq = cookie === undefined ? 0 : 1;
    const extension = (type: number, data: Buffer): Buffer => Buffer.concat([u16(type), vector(2, data)]);
    const body = [
      u16(DTLS_1_2),
      this.#random,
      vector(1),
      vector(1, cookie ?? Buffer.alloc(0)),
      vector(2, u16(CIPHER_SUITE)),
      vector(1, u8(NO_COMPRESSION)),
      vector(
        2,
        extension(Extension.supportedGroups, vector(2, u16(Group.x25519, Group.secp256r1))),
        extension(Extension.pointFormats, vector(1, u8(UNCOMPRESSED))),
        extension(Extension.signatureAlgorithms, vector(2, u16(...SIGNATURES))),
        extension(Extension.useSrtp, Buffer.concat([vector(2, u16(SRTP_PROFILE)), vector(1)])),
        extension(Extension.extendedMasterSecret, Buffer.alloc(0)),
        extension(Extension.renegotiationInfo, vector(1)),
      ),
    ];
    const message = handshakeMessage(HandshakeType.clientHello, messageSeq, ...body);
    this.#hellos[messageSeq] = message;
    return [{ type: ContentType.handshake, sealed: false, body: message }];
  }

  /**
   * Answers the server's flight, five messages with headers that anybody may have sent. Returns our flight, or why the
   * server's is refused; another one may follow then.
   */
  answer(messages: readonly Buffer[], fingerprint: Fingerprint): FlightRecord[] | string {
    const isInOrder = messages.length === SERVER_FLIGHT.length && SERVER_FLIGHT.every((t, i) => messages[i]?.[0] === t);
    // The server's first message has the number of the hello that it answers.
    const ourHello = this.#hellos[messages[0]?.readUInt16BE(4) ?? 0];
    if (!isInOrder || ourHello === undefined) return 'the server sent messages in the wrong order';
    const [hello, certificates, exchange, request] = messages.map((message) => message.subarray(HANDSHAKE_HEADER));
    const serverRandom = randomOf(hello!);
    if (typeof serverRandom === 'string') return serverRandom;
    const certificate = new WireReader(new WireReader(certificates!).vector(3)).vector(3);
    if (!matchesFingerprint(certificate, fingerprint)) {
      return 'the DTLS certificate does not match the announced fingerprint';
    }
    if (!acceptsOurs(request!)) return 'the server does not accept ECDSA with SHA-256';
    const reader = new WireReader(exchange!);
    const [type, group] = [reader.number(1), reader.number(2)];
    const theirs = reader.vector(1);
    const parameters = exchange!.subarray(0, 4 + theirs.length);
    const isKnown = group === Group.x25519 || group === Group.secp256r1;
    if (reader.overrun || type !== NAMED_CURVE || !isKnown) return 'the server sent no usable key';
    const signed = Buffer.concat([this.#random, serverRandom, parameters]);
    this.verified += 1;
    if (!isSignedBy(certificate, signed, exchange!.subarray(parameters.length))) {
      return 'the server does not hold the key of its DTLS certificate';
    }
    const ours = createKeyExchange(group);
    const preMaster = ours.secret(theirs);
    if (preMaster === undefined) return 'the server sent no usable key';
    this.#serverRandom = serverRandom;
    this.certificate = certificate;
    return this.#flight([ourHello, ...messages], { preMaster, publicKey: ours.publicKey });
  }

  /** Returns true if this is the Finished of a server that saw the same handshake (RFC 5246 section 7.4.9). */
  isFinished(message: Buffer): boolean {
    if (this.#master === undefined) return false;
    const expected = verifyData(this.#master, 'server', this.#transcript);
    const given = message.subarray(HANDSHAKE_HEADER);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  get #randoms(): { client: Buffer; server: Buffer } {
    return { client: this.#random, server: this.#serverRandom };
  }

  #flight(
    hellos: readonly Buffer[],
    { preMaster, publicKey }: { preMaster: Buffer; publicKey: Buffer },
  ): FlightRecord[] {
    const first = (hellos[0]?.readUInt16BE(4) ?? 0) + 1;
    const certificate = handshakeMessage(HandshakeType.certificate, first, vector(3, vector(3, this.#identity.der)));
    const key = handshakeMessage(HandshakeType.clientKeyExchange, first + 1, vector(1, publicKey));
    const transcript = [...hellos, certificate, key];
    this.#master = extendedMasterSecret(preMaster, transcript);
    const signature = sign('sha256', Buffer.concat(transcript), this.#identity.key);
    const proof = handshakeMessage(HandshakeType.certificateVerify, first + 2, u16(ECDSA_SHA256), vector(2, signature));
    transcript.push(proof);
    const finished = handshakeMessage(
      HandshakeType.finished,
      first + 3,
      verifyData(this.#master, 'client', transcript),
    );
    this.#transcript = [...transcript, finished];
    const { client, server } = recordKeys(this.#master, this.#randoms);
    this.#records.keys = { ours: client, theirs: server };
    return [
      ...[certificate, key, proof].map((body) => ({ type: ContentType.handshake, sealed: false, body })),
      { type: ContentType.changeCipherSpec, sealed: false, body: u8(1) },
      { type: ContentType.handshake, sealed: true, body: finished },
    ];
  }
}

/** Returns the cookie in the body of a HelloVerifyRequest (RFC 6347 section 4.2.1); undefined if it is malformed. */
export function cookieOf(body: Buffer): Buffer | undefined {
  const reader = new WireReader(body);
  reader.number(2);
  const cookie = reader.vector(1);
  return reader.overrun ? undefined : cookie;
}

/** Returns the random of a ServerHello that chose what we offer, or why it is refused. */
function randomOf(body: Buffer): Buffer | string {
  const reader = new WireReader(body);
  const version = reader.number(2);
  const random = reader.take(RANDOM_BYTES);
  reader.vector(1); // session id: sessions are never resumed
  const suite = reader.number(2);
  const compression = reader.number(1);
  const extensions = readExtensions(reader);
  if (extensions === undefined) return 'the server sent a malformed hello';
  if (version !== DTLS_1_2) return 'the server does not support DTLS 1.2';
  if (suite !== CIPHER_SUITE || compression !== NO_COMPRESSION) {
    return 'the server does not support TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256';
  }
  if (!extensions.has(Extension.extendedMasterSecret)) return 'the server does not support the extended master secret';
  const srtp = extensions.get(Extension.useSrtp);
  if (srtp === undefined || numbers16(new WireReader(srtp).vector(2))[0] !== SRTP_PROFILE) {
    return 'the server does not support SRTP_AES128_CM_HMAC_SHA1_80';
  }
  return random;
}

/** Returns true if a CertificateRequest allows our signatures (RFC 5246 section 7.4.4). */
function acceptsOurs(request: Buffer): boolean {
  const reader = new WireReader(request);
  reader.vector(1); // types of certificates
  return numbers16(reader.vector(2)).includes(ECDSA_SHA256) && !reader.overrun;
}
