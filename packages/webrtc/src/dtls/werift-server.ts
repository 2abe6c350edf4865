import { DtlsServer } from 'werift';
import { type DtlsCertificate, SIGNATURE_HASH } from './certificate.js';
import { HandshakeType } from './handshake-messages.js';
import { useNativeX25519 } from './native-x25519.js';
import { ContentType, type DtlsRecord, RECORD_HEADER } from './records.js';

useNativeX25519();

/** SRTP_AES128_CM_HMAC_SHA1_80 (RFC 5764 section 4.1.2), the one every browser must have (RFC 8827 section 6.5). */
const SRTP_PROFILE = 1;
const DTLS_1_2 = 0xfefd;
/** Datagrams of a flight stay under this. */
const MAX_DATAGRAM = 1_200;

/** Thrown into werift's sender once a flight is out, so that it does not start a retransmission timer of its own. */
const FLIGHT_SENT = new Error('flight sent');

export interface WeriftServerEvents {
  /** A whole flight to the client; also what to send again when the client repeats itself. */
  onFlight(datagrams: Buffer[]): void;
  /** Before Finished is answered: false refuses the client. */
  onFinished(finished: Buffer): boolean;
  /** The handshake is over. */
  onConnected(): void;
  /** The handshake cannot go on. */
  onProblem(problem: Error): void;
}

/**
 * werift's `DtlsServer` (pinned) held by its public members: it computes the handshake, while order, retransmission, the
 * client's proofs and alerts are ours. It never holds a timer: its sender is stopped by {@link FLIGHT_SENT} as soon as a
 * flight is out, and its waiting loops are only entered when what they wait for is there.
 */
export class WeriftServer {
  readonly #server: DtlsServer;
  readonly #socket: {
    onData: (data: Buffer) => void;
    send: (data: Buffer) => Promise<void>;
    close: () => Promise<void>;
  };
  #flight: Buffer[] = [];
  #connected = false;
  #alertSequence = 2 ** 32;

  constructor(
    certificate: DtlsCertificate,
    private readonly events: WeriftServerEvents,
  ) {
    this.#socket = {
      onData: () => undefined,
      send: (record) => this.#collect(record),
      close: () => Promise.resolve(),
    };
    this.#server = new DtlsServer({
      transport: this.#socket as never,
      cert: certificate.certPem,
      key: certificate.keyPem,
      signatureHash: SIGNATURE_HASH,
      srtpProfiles: [SRTP_PROFILE],
      certificateRequest: true,
      extendedMasterSecret: true,
    });
    const handle = this.#server.onHandleHandshakes;
    this.#server.onHandleHandshakes = async (messages) => {
      try {
        if (!messages.every((message) => this.#admit(message.msg_type, () => message.serialize()))) return;
        await handle(messages);
      } catch (error) {
        if (error !== FLIGHT_SENT) this.events.onProblem(error instanceof Error ? error : new Error(String(error)));
      }
    };
    this.#server.onConnect.subscribe(() => {
      if (this.#connected) return;
      this.#connected = true;
      this.events.onConnected();
    });
  }

  /** Whether the client agreed to the SRTP profile. */
  get hasSrtpProfile(): boolean {
    return this.#server.srtp.srtpProfile === SRTP_PROFILE;
  }

  /** Whether encrypted records can be read. */
  get hasKeys(): boolean {
    return this.#server.cipher.cipher !== undefined;
  }

  /** DER certificate of the client. */
  get clientCertificate(): Buffer | undefined {
    return this.#server.remoteCertificate;
  }

  get masterSecret(): Buffer | undefined {
    return this.#server.cipher.masterSecret;
  }

  /** The handshake so far, from the ClientHello with cookie: messages with headers. */
  get transcript(): Buffer[] {
    return this.#server.dtls.sortedHandshakeCache.map((message) => message.serialize());
  }

  get keys(): { localKey: Buffer; localSalt: Buffer; remoteKey: Buffer; remoteSalt: Buffer } {
    return this.#server.extractSessionKeys(16, 14);
  }

  /** Hands in one whole plaintext handshake message with its header. */
  deliverMessage(message: Buffer): void {
    const record = Buffer.alloc(RECORD_HEADER + message.length);
    record[0] = ContentType.handshake;
    record.writeUInt16BE(DTLS_1_2, 1);
    record.writeUInt16BE(message.length, 11);
    message.copy(record, RECORD_HEADER);
    this.#deliver(record);
  }

  /** Hands in one encrypted record of the handshake. What does not decrypt is ignored. */
  deliverEncrypted(record: DtlsRecord): void {
    this.#deliver(record.whole);
  }

  /** Plaintext of an encrypted record; undefined when it is not authentic. */
  decrypt(record: DtlsRecord): Buffer | undefined {
    try {
      return this.#server.cipher.cipher.decrypt(this.#server.sessionType, record.fragment, {
        type: record.type,
        version: record.version,
        epoch: record.epoch,
        sequenceNumber: record.sequence,
      });
    } catch {
      return undefined;
    }
  }

  /** One encrypted alert record; undefined before the keys are there. */
  alert(level: number, description: number): Buffer | undefined {
    if (!this.#connected) return undefined;
    // werift starts to count anew after its Finished; ours lie apart, so that no nonce is ever used twice.
    const sequenceNumber = ++this.#alertSequence;
    const header = { type: ContentType.alert, version: DTLS_1_2, epoch: 1, sequenceNumber };
    const { cipher } = this.#server.cipher;
    const fragment = cipher.encrypt(this.#server.sessionType, Buffer.from([level, description]), header);
    const record = Buffer.alloc(RECORD_HEADER + fragment.length);
    record[0] = ContentType.alert;
    record.writeUInt16BE(DTLS_1_2, 1);
    record.writeUInt16BE(1, 3);
    record.writeUIntBE(sequenceNumber, 5, 6);
    record.writeUInt16BE(fragment.length, 11);
    Buffer.from(fragment).copy(record, RECORD_HEADER);
    return record;
  }

  #deliver(record: Buffer): void {
    try {
      this.#socket.onData(record);
    } catch (error) {
      this.events.onProblem(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Every handshake message passes here after decryption and before werift acts on it. */
  #admit(type: number, message: () => Buffer): boolean {
    return type !== HandshakeType.finished || this.events.onFinished(message());
  }

  /** Puts the records of a flight together; the last one sends it. */
  #collect(record: Buffer): Promise<void> {
    const copy = Buffer.from(record);
    const last = this.#flight.at(-1);
    if (last !== undefined && last.length + copy.length <= MAX_DATAGRAM) {
      this.#flight[this.#flight.length - 1] = Buffer.concat([last, copy]);
    } else {
      this.#flight.push(copy);
    }
    const type = copy[0] === ContentType.handshake && copy.readUInt16BE(3) === 0 ? copy[RECORD_HEADER] : undefined;
    const encrypted = copy.readUInt16BE(3) > 0;
    const ends = encrypted || type === HandshakeType.helloVerifyRequest || type === HandshakeType.serverHelloDone;
    if (!ends) return Promise.resolve();
    const flight = this.#flight;
    this.#flight = [];
    this.events.onFlight(flight);
    // Only the flight that waits for an answer would be repeated by a timer.
    if (type === HandshakeType.serverHelloDone) throw FLIGHT_SENT;
    return Promise.resolve();
  }
}
