import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, isIPv6, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { addressBytes } from '@bloom/net';
import { DtlsClient, HashAlgorithm, SignatureAlgorithm, SrtcpSession, SrtpSession } from 'werift';
import { createCertificate, type DtlsCertificate } from '../dtls/certificate.js';
import { channelPayload, writeChannelHeader } from '../relay/channel-data.js';
import { longTermKey } from '../relay/allocation.js';
import { StreamFrames, streamFrame } from '../relay/stream-frames.js';
import type { TransportAddress } from '../stun/address.js';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import type { IceCredentials, RelayUser } from '../transport/api.js';

const CHANNEL = 0x4001;

/** Carries whole datagrams or frames to the server and back. */
interface Wire {
  readonly local: { address: string; port: number };
  send(datagram: Buffer): void;
  onDatagram: (datagram: Buffer) => void;
  close(): Promise<void>;
}

async function udpWire(server: { address: string; port: number }): Promise<Wire> {
  const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4');
  socket.connect(server.port, server.address);
  await once(socket, 'connect');
  const wire: Wire = {
    local: socket.address(),
    send: (datagram) => socket.send(datagram),
    onDatagram: () => undefined,
    close: async () => {
      const ended = once(socket, 'close');
      socket.close();
      await ended;
    },
  };
  socket.on('message', (datagram) => wire.onDatagram(datagram));
  return wire;
}

async function tcpWire(port: number, dial: (port: number, host: string) => Socket): Promise<Wire> {
  const socket = dial(port, '127.0.0.1');
  await once(socket, socket instanceof TLSSocket ? 'secureConnect' : 'connect');
  const frames = new StreamFrames();
  const wire: Wire = {
    local: { address: socket.localAddress ?? '', port: socket.localPort ?? 0 },
    send: (datagram) => socket.write(streamFrame(datagram)),
    onDatagram: () => undefined,
    close: async () => {
      if (socket.closed) return;
      const ended = once(socket, 'close');
      socket.destroy();
      await ended;
    },
  };
  socket.on('data', (chunk) => {
    for (const frame of frames.push(chunk)) wire.onDatagram(Buffer.from(frame));
  });
  socket.on('error', () => undefined);
  return wire;
}

const REPEAT_MS = 1_000;

/**
 * A client for tests: a UDP socket with a small TURN client, connectivity checks, werift's DTLS client and werift's
 * SRTP. Talks to one port, directly or through its relay.
 */
export class TestClient {
  readonly #udp: { address: string; port: number };
  readonly #pending = new Map<string, (message: StunMessage) => void>();
  readonly #waiting: { wanted: (packet: Buffer) => boolean; resolve: (packet: Buffer) => void }[] = [];
  readonly #dtlsSocket = {
    onData: (_data: Buffer): void => undefined,
    send: (data: Buffer): Promise<void> => {
      this.sendPacket(data);
      return Promise.resolve();
    },
    close: (): Promise<void> => Promise.resolve(),
  };
  readonly server: TransportAddress;
  /** Packets received that no caller awaited. */
  readonly inbox: Buffer[] = [];
  dtls: DtlsClient | undefined;
  srtp: SrtpSession | undefined;
  srtcp: SrtcpSession | undefined;
  realm = '';
  nonce = '';
  key: Buffer = Buffer.alloc(0);
  user: RelayUser | undefined;
  /** Path of outgoing packets: direct, as Send indications, or through a channel. */
  mode: 'direct' | 'send' | 'channel' = 'direct';
  /** Time a request waits for its response. Retransmits after one second, as clients do (RFC 8489 section 6.2.1). */
  patienceMs = 1_000;

  /** Previous wires, on which the client still listens. */
  readonly #old: Wire[] = [];
  #closed = false;

  private constructor(
    public wire: Wire,
    readonly certificate: DtlsCertificate,
    udp: { address: string; port: number },
  ) {
    this.#udp = udp;
    this.server = { bytes: addressBytes(udp.address) ?? new Uint8Array(4), port: udp.port };
    wire.onDatagram = (datagram) => this.#receive(datagram);
  }

  static async open(server: { address: string; port: number }, certificate?: DtlsCertificate): Promise<TestClient> {
    return new TestClient(await udpWire(server), certificate ?? (await createCertificate()), server);
  }

  /** Connects to the relay over TCP; the relayed address is still that of the UDP port. */
  static async openTcp(
    tcpPort: number,
    server: { address: string; port: number },
    certificate: DtlsCertificate,
  ): Promise<TestClient> {
    return new TestClient(await tcpWire(tcpPort, connect), certificate, server);
  }

  /** Like `openTcp`, over TLS. */
  static async openTls(
    tlsPort: number,
    server: { address: string; port: number },
    certificate: DtlsCertificate,
  ): Promise<TestClient> {
    const dial = (port: number, host: string): Socket => connectTls({ port, host, rejectUnauthorized: false });
    return new TestClient(await tcpWire(tlsPort, dial), certificate, server);
  }

  /** Continues from a new address, like a client that restarts ICE. Still receives packets at the old address. */
  async move(): Promise<() => void> {
    const { wire, mode } = this;
    this.#old.push(wire);
    this.wire = await udpWire(this.#udp);
    this.wire.onDatagram = wire.onDatagram;
    this.mode = 'direct';
    // Lets a test send from the old address again.
    return () => {
      this.#old.push(this.wire);
      this.wire = wire;
      this.mode = mode;
    };
  }

  /** Sends a request and resolves with its response. Rejects after `patienceMs`. */
  request(writer: StunWriter, transactionId: Buffer, wrap = false): Promise<StunMessage> {
    const message = writer.finish();
    const send = (): void => {
      if (this.#closed) return;
      if (wrap) this.sendPacket(message);
      else this.wire.send(message);
    };
    return new Promise((resolve, reject) => {
      const id = transactionId.toString('hex');
      const end = (): void => {
        this.#pending.delete(id);
        clearTimeout(timer);
        clearInterval(repeat);
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error('no answer'));
      }, this.patienceMs);
      const repeat = setInterval(send, REPEAT_MS);
      this.#pending.set(id, (answer) => {
        end();
        resolve(answer);
      });
      send();
    });
  }

  /** Sends an authenticated relay request. */
  relayRequest(method: Method, fill: (writer: StunWriter) => StunWriter): Promise<StunMessage> {
    const id = randomBytes(12);
    const writer = fill(new StunWriter(method, MessageClass.request, id, 512))
      .text(Attribute.username, this.user?.username ?? '')
      .text(Attribute.realm, this.realm)
      .text(Attribute.nonce, this.nonce)
      .integrity(this.key);
    return this.request(writer, id);
  }

  /** Requests a challenge, then allocates. */
  async allocate(user: RelayUser, lifetimeS?: number): Promise<StunMessage> {
    await this.challenge(user);
    return this.relayRequest(Method.allocate, (writer) => {
      writer.uint32(Attribute.requestedTransport, 17 << 24);
      return lifetimeS === undefined ? writer : writer.uint32(Attribute.lifetime, lifetimeS);
    });
  }

  async challenge(user: RelayUser): Promise<StunMessage> {
    const id = randomBytes(12);
    const bare = new StunWriter(Method.allocate, MessageClass.request, id).uint32(
      Attribute.requestedTransport,
      17 << 24,
    );
    const challenge = await this.request(bare, id);
    this.realm = challenge.text(Attribute.realm) ?? '';
    this.nonce = challenge.text(Attribute.nonce) ?? '';
    this.user = user;
    this.key = longTermKey(user.username, this.realm, user.password);
    return challenge;
  }

  async permit(peer: TransportAddress = this.server): Promise<StunMessage> {
    const answer = await this.relayRequest(Method.createPermission, (w) =>
      w.xorAddress(Attribute.xorPeerAddress, peer),
    );
    if (answer.messageClass === MessageClass.success && this.mode === 'direct') this.mode = 'send';
    return answer;
  }

  async bindChannel(channel = CHANNEL, peer: TransportAddress = this.server): Promise<StunMessage> {
    const answer = await this.relayRequest(Method.channelBind, (writer) =>
      writer.uint32(Attribute.channelNumber, channel << 16).xorAddress(Attribute.xorPeerAddress, peer),
    );
    if (answer.messageClass === MessageClass.success) this.mode = 'channel';
    return answer;
  }

  /** Sends a connectivity check on the path selected by `mode`. */
  check(ice: IceCredentials, useCandidate = true): Promise<StunMessage> {
    const id = randomBytes(12);
    const writer = new StunWriter(Method.binding, MessageClass.request, id)
      .text(Attribute.username, `${ice.localUfrag}:${ice.remoteUfrag}`)
      .uint32(Attribute.priority, 0x6e7f00ff)
      .bytes(Attribute.iceControlling, randomBytes(8));
    if (useCandidate) writer.bytes(Attribute.useCandidate, Buffer.alloc(0));
    return this.request(writer.integrity(ice.localPwd).fingerprint(), id, true);
  }

  sendPacket(packet: Buffer): void {
    if (this.mode === 'direct') {
      this.wire.send(packet);
      return;
    }
    if (this.mode === 'send') {
      const indication = new StunWriter(Method.send, MessageClass.indication, randomBytes(12), packet.length + 64);
      indication.xorAddress(Attribute.xorPeerAddress, this.server).bytes(Attribute.data, packet);
      this.wire.send(indication.finish());
      return;
    }
    const datagram = Buffer.alloc(4 + packet.length);
    writeChannelHeader(datagram, CHANNEL, packet.length);
    packet.copy(datagram, 4);
    this.wire.send(datagram);
  }

  /** Runs the DTLS handshake as client. Resolves when SRTP is ready. */
  async handshake(): Promise<void> {
    const dtls = new DtlsClient({
      transport: this.#dtlsSocket as never,
      cert: this.certificate.certPem,
      key: this.certificate.keyPem,
      signatureHash: { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
      srtpProfiles: [1],
      extendedMasterSecret: true,
    });
    this.dtls = dtls;
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
    this.srtp = new SrtpSession(config);
    this.srtcp = new SrtcpSession(config);
  }

  /** Resolves with the next matching packet other than STUN, already received or still to come. */
  next(wanted: (packet: Buffer) => boolean = () => true): Promise<Buffer> {
    const at = this.inbox.findIndex(wanted);
    if (at >= 0) return Promise.resolve(this.inbox.splice(at, 1)[0] as Buffer);
    return new Promise((resolve) => {
      this.#waiting.push({ wanted, resolve });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    // Ends werift's retransmission loop at its next iteration.
    if (this.dtls) this.dtls.dtls.flight = 255;
    for (const wire of new Set([this.wire, ...this.#old])) await wire.close();
  }

  #receive(datagram: Buffer): void {
    const first = datagram[0] ?? 0;
    if (first >= 64 && first <= 79) {
      const payload = channelPayload(datagram);
      if (payload) this.#packet(payload);
      return;
    }
    if (first > 3) return this.#packet(datagram);
    const message = StunMessage.parse(datagram);
    if (message?.method === Method.data) {
      const data = message.bytes(Attribute.data);
      if (data) this.#packet(data);
      return;
    }
    this.#answer(message);
  }

  #packet(packet: Buffer): void {
    const first = packet[0] ?? 0;
    if (first <= 3) return this.#answer(StunMessage.parse(packet));
    if (first >= 20 && first <= 63) return this.#dtlsSocket.onData(packet);
    const at = this.#waiting.findIndex(({ wanted }) => wanted(packet));
    if (at >= 0) this.#waiting.splice(at, 1)[0]?.resolve(packet);
    else this.inbox.push(packet);
  }

  #answer(message: StunMessage | undefined): void {
    if (message === undefined) return;
    const id = message.transactionId.toString('hex');
    this.#pending.get(id)?.(message);
    this.#pending.delete(id);
  }
}
