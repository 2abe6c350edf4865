/** A client over real UDP, for tests: connectivity checks, werift's DTLS and SRTP. */
import { createHmac, randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { crc32 } from 'node:zlib';
import type { DtlsCertificate } from '@bloom/webrtc';
import { DtlsClient, HashAlgorithm, RtpPacket, SignatureAlgorithm, SrtcpSession, SrtpSession } from 'werift';
import { DataClient } from '@bloom/webrtc/testing';
import type { InboundTrack, MediaRoom, OutboundSlot, TransportNegotiation } from '../media-engine.js';

export const STUN_COOKIE = 0x2112a442;
const SUCCESS = 0x0101;

/** One binding request with MESSAGE-INTEGRITY and FINGERPRINT, RFC 8489 sections 14.5 and 14.7. */
function bindingRequest(ice: TransportNegotiation['ice'], transactionId: Buffer): Buffer {
  const attributes = Buffer.concat([
    attribute(0x0006, Buffer.from(`${ice.localUfrag}:${ice.remoteUfrag}`)),
    attribute(0x0024, Buffer.from([0x6e, 0x7f, 0, 0xff])),
    attribute(0x802a, randomBytes(8)),
    attribute(0x0025, Buffer.alloc(0)),
  ]);
  const header = Buffer.alloc(20);
  header.writeUInt16BE(0x0001, 0);
  header.writeUInt32BE(STUN_COOKIE, 4);
  transactionId.copy(header, 8);
  header.writeUInt16BE(attributes.length + 24, 2);
  const mac = createHmac('sha1', ice.localPwd).update(header).update(attributes).digest();
  header.writeUInt16BE(attributes.length + 24 + 8, 2);
  const body = Buffer.concat([header, attributes, attribute(0x0008, mac)]);
  const fingerprint = Buffer.alloc(4);
  fingerprint.writeUInt32BE((crc32(body) ^ 0x5354554e) >>> 0);
  return Buffer.concat([body, attribute(0x8028, fingerprint)]);
}

export function attribute(type: number, value: Buffer): Buffer {
  const out = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4);
  out.writeUInt16BE(type, 0);
  out.writeUInt16BE(value.length, 2);
  value.copy(out, 4);
  return out;
}

interface Wanted {
  inbound?: InboundTrack[];
  outbound?: OutboundSlot[];
  data?: TransportNegotiation['data'];
}

export class WireClient {
  readonly #certificate: DtlsCertificate;
  generation = 0;
  ice: TransportNegotiation['ice'] = { localUfrag: '', localPwd: '', remoteUfrag: '', remotePwd: '' };
  /** Decrypted packets, in order of arrival. */
  readonly rtp: RtpPacket[] = [];
  readonly rtcp: Buffer[] = [];
  #socket!: Socket;
  #srtp: SrtpSession | undefined;
  #srtcp: SrtcpSession | undefined;
  #dtls: DtlsClient | undefined;
  #data: DataClient | undefined;
  readonly #dtlsWire = {
    onData: (_data: Buffer): void => undefined,
    send: (data: Buffer): Promise<void> => {
      this.#socket.send(data);
      return Promise.resolve();
    },
    close: (): Promise<void> => Promise.resolve(),
  };
  readonly #answers = new Map<string, () => void>();
  readonly #waiters: { done: () => boolean; resolve: () => void }[] = [];

  /** True for the second connection of a client, on which it receives. */
  isReceiver = false;

  private constructor(
    readonly peerId: string,
    readonly room: MediaRoom,
    certificate: DtlsCertificate,
  ) {
    this.#certificate = certificate;
  }

  static async open(room: MediaRoom, peerId: string, certificate: DtlsCertificate): Promise<WireClient> {
    const client = new WireClient(peerId, room, certificate);
    room.openTransport(peerId, { username: `1900000000:${room.roomId}-${peerId}`, password: 'cGFzc3dvcmQ=' });
    await client.#bind();
    return client;
  }

  static async openReceiver(room: MediaRoom, peerId: string, certificate: DtlsCertificate): Promise<WireClient> {
    const client = new WireClient(peerId, room, certificate);
    client.isReceiver = true;
    room.openReceiver(peerId);
    await client.#bind();
    return client;
  }

  async #bind(): Promise<void> {
    this.#socket = createSocket('udp4');
    this.#socket.on('message', (datagram) => this.#receive(datagram));
    const { port, address } = this.room.endpointOf(this.peerId)!;
    this.#socket.connect(port, address);
    await once(this.#socket, 'connect');
  }

  /** Runs a whole cycle: negotiation, check with the new credentials, DTLS the first time. */
  async cycle(wanted: Wanted = {}): Promise<void> {
    await this.negotiate(wanted);
    await this.check();
    if (this.#srtp === undefined) await this.#handshake();
  }

  async negotiate({ inbound = [], outbound = [], data }: Wanted = {}): Promise<void> {
    this.generation++;
    const suffix = `${this.room.roomId}${this.peerId}${this.isReceiver ? 'r' : ''}${this.generation}`;
    this.ice = {
      localUfrag: `s${suffix}`,
      localPwd: `server-password-of-${suffix}`,
      remoteUfrag: `c${suffix}`,
      remotePwd: `client-password-of-${suffix}`,
    };
    await this.room.negotiate(this.peerId, {
      generation: this.generation,
      ice: this.ice,
      fingerprint: this.#certificate.fingerprint,
      inbound,
      outbound,
      ...(data === undefined ? {} : { data }),
      ...(this.isReceiver ? { receiver: true } : {}),
    });
  }

  /** Moves to a new source address, as a browser does with each new relay allocation. */
  async moveAddress(): Promise<void> {
    const old = this.#socket;
    await this.#bind();
    await this.check();
    old.close();
  }

  async check(): Promise<void> {
    const id = randomBytes(12);
    const answered = new Promise<void>((resolve) => this.#answers.set(id.toString('hex'), resolve));
    this.#socket.send(bindingRequest(this.ice, id));
    await answered;
  }

  async #handshake(): Promise<void> {
    const dtls = new DtlsClient({
      transport: this.#dtlsWire as never,
      cert: this.#certificate.certPem,
      key: this.#certificate.keyPem,
      signatureHash: { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
      srtpProfiles: [1],
      extendedMasterSecret: true,
    });
    this.#dtls = dtls;
    const connected = new Promise<void>((resolve, reject) => {
      dtls.onConnect.once(() => resolve());
      dtls.onError.once(reject);
    });
    dtls.connect().catch(() => undefined);
    await connected;
    const keys = dtls.extractSessionKeys(16, 14);
    const config = {
      keys: {
        localMasterKey: keys.localKey as Buffer,
        localMasterSalt: keys.localSalt as Buffer,
        remoteMasterKey: keys.remoteKey as Buffer,
        remoteMasterSalt: keys.remoteSalt as Buffer,
      },
      profile: 1 as const,
    };
    this.#srtcp = new SrtcpSession(config);
    this.#srtp = new SrtpSession(config);
  }

  /** Connects data channels, after a cycle that wanted them. */
  async connectData(): Promise<DataClient> {
    const dtls = this.#dtls!;
    const data = new DataClient((packet) => void dtls.send(packet));
    dtls.onData.subscribe((packet) => data.receive(packet));
    this.#data = data;
    await data.connect();
    return data;
  }

  /** Starts a handshake that is not expected to succeed. */
  tryHandshake(): void {
    this.#handshake().catch(() => undefined);
  }

  /** Seals and sends one plaintext packet. */
  send(packet: Buffer): void {
    const { header, payload } = RtpPacket.deSerialize(packet);
    const padding = header.padding ? packet.subarray(packet.length - header.paddingSize) : Buffer.alloc(0);
    this.#socket.send(this.#srtp!.encrypt(Buffer.concat([payload, padding]), header));
  }

  sendRtcp(compound: Buffer): void {
    this.#socket.send(this.#srtcp!.encrypt(compound));
  }

  sendRaw(datagram: Buffer): void {
    this.#socket.send(datagram);
  }

  /** Resolves once the condition holds; it is checked with each packet. */
  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ done, resolve }));
  }

  async close(): Promise<void> {
    await this.#data?.end();
    // Ends werift's retransmission loop at its next turn.
    if (this.#dtls !== undefined) this.#dtls.dtls.flight = 255;
    const ended = once(this.#socket, 'close');
    this.#socket.close();
    await ended;
  }

  #receive(datagram: Buffer): void {
    const first = datagram[0]!;
    if (first <= 3) {
      if (datagram.readUInt16BE(0) !== SUCCESS) return;
      const id = datagram.subarray(8, 20).toString('hex');
      this.#answers.get(id)?.();
      this.#answers.delete(id);
      return;
    }
    if (first < 64) return this.#dtlsWire.onData(datagram);
    if (this.#srtp === undefined || this.#srtcp === undefined) return;
    const type = datagram[1]!;
    if (type >= 192 && type <= 223) this.rtcp.push(this.#srtcp.decrypt(datagram));
    else this.rtp.push(RtpPacket.deSerialize(this.#srtp.decrypt(datagram)));
    const ready = this.#waiters.filter(({ done }) => done());
    for (const waiter of ready) {
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      waiter.resolve();
    }
  }
}
