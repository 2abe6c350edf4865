import {
  openConnection,
  nominatedRelay,
  Publisher,
  type RelayServer,
  remoteOf,
  signal,
  stampOf,
} from '@bloom/participant';
import type { RTCPeerConnection } from 'werift';
import WebSocket from 'ws';
import type { Path } from './problems.js';

/** How long the server has to answer a close, ms. */
const CLOSE_MS = 1_000;
const VIDEO_BYTES = 1_200;
const PACKETS_PER_SECOND = 100;

export interface PersonOptions {
  /** Address of the websocket. */
  readonly url: string;
  readonly token: string;
  readonly path: Path;
  readonly publishes: boolean;
  /** Limit of the websocket's handshake, ms. */
  readonly timeoutMs: number;
}

/** A participant of a room without a browser, whose media takes one path only. */
export class Person {
  /** Times since the start, ms. */
  readonly at: { authenticated?: number; offered?: number; ice?: number; connected?: number } = {};
  /** When the first packet of others arrived, on the clock of `performance`. */
  firstMediaAt: number | undefined;
  /** Relays that the server announces; known once it has asked for an offer. */
  relays: readonly RelayServer[] = [];
  readonly socket: WebSocket;
  /** Resolves when the server has accepted the token. Rejects with the failure of the websocket. */
  readonly authenticated: Promise<void>;
  /** Resolves when ICE and DTLS have succeeded. */
  readonly connected: Promise<void>;
  readonly publisher: Publisher | undefined;
  /** Packets of others that have arrived, and the highest number of its own packets that the server has reported. */
  received = 0;
  confirmed = 0;
  /** Times from the sender to here in ms, of packets sent by this program. */
  readonly delays: number[] = [];
  readonly #pc: RTCPeerConnection = openConnection({ iceUseIpv6: true });
  readonly #startedAt = performance.now();

  constructor({ url, token, path, publishes, timeoutMs }: PersonOptions) {
    this.publisher = publishes ? new Publisher('video', VIDEO_BYTES) : undefined;
    this.socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxRedirects: 0 });
    this.#pc.iceConnectionStateChange.subscribe(() => {
      // werift may report success before a pair is nominated, and only a nominated pair proves a path.
      if (this.remote !== undefined) this.at.ice ??= this.#elapsed();
    });
    this.#pc.onTrack.subscribe((track) => track.onReceiveRtp.subscribe(({ payload }) => this.#receive(payload)));
    let accepted = (): void => {};
    const authenticated = new Promise<void>((resolve) => (accepted = resolve));
    const joined = signal(this.#pc, this.socket, {
      token,
      publisher: this.publisher,
      onAuthenticated: () => {
        this.at.authenticated ??= this.#elapsed();
        accepted();
      },
      onServers: (relays) => {
        this.at.offered ??= this.#elapsed();
        this.relays = relays;
        this.#choose(path);
      },
    });
    this.connected = joined.then(() => {
      this.at.connected ??= this.#elapsed();
      for (const sender of this.#pc.getSenders()) {
        sender.onRtcp.subscribe((packet) => {
          const reports = (packet as { reports?: readonly { highestSequence: number }[] }).reports ?? [];
          for (const { highestSequence } of reports) this.confirmed = Math.max(this.confirmed, highestSequence);
        });
      }
    });
    this.authenticated = Promise.race([authenticated, joined.then(accepted)]);
    // Both are awaited by the trial, which may have failed before.
    this.connected.catch(() => undefined);
    this.authenticated.catch(() => undefined);
  }

  /** `203.0.113.7:50000`, or `turn.example.com:443` for a relay, as announced for this path. */
  announcedFor(path: Path): string | undefined {
    const relay = this.relayFor(path);
    return relay === undefined ? undefined : `${relay.serverAddr}:${relay.serverPort}`;
  }

  /** Returns the relay of a path. The UDP relay has the address of the direct path. */
  relayFor(path: Path): RelayServer | undefined {
    const transport = path === 'udp' ? 'udp' : path.slice('relay-'.length);
    const fitting = this.relays.filter((one) => one.transport === transport);

    // werift's relay client has IPv4 only.
    return fitting.find(({ serverAddr }) => !serverAddr.startsWith('[')) ?? fitting[0];
  }

  /** The remote address of the media; undefined before ICE has succeeded. */
  get remote(): string | undefined {
    try {
      const [address, port] = remoteOf(this.#pc);
      return `${address.includes(':') ? `[${address}]` : address}:${port}`;
    } catch {
      return undefined;
    }
  }

  /** When the server asked for an offer, on the clock of `performance`. */
  get offeredAt(): number {
    return this.#startedAt + (this.at.offered ?? 0);
  }

  /** True if ICE found a path. */
  get hasPath(): boolean {
    return this.at.ice !== undefined;
  }

  /** True if the relay gave an allocation. */
  get isAllocated(): boolean {
    return this.#pc.iceTransports.some(({ connection }) =>
      connection.localCandidates.some(({ type }) => type === 'relay'),
    );
  }

  /** Transport to the relay in use: werift uses TCP where UDP does not get through. */
  get relayTransport(): string | undefined {
    return nominatedRelay(this.#pc);
  }

  /** False if the server took nothing from this participant. */
  get mayPublish(): boolean {
    return this.#pc.getTransceivers().some(({ currentDirection }) => currentDirection === 'sendonly');
  }

  startMedia(): void {
    this.publisher?.start(PACKETS_PER_SECOND);
  }

  stopMedia(): void {
    this.publisher?.stop();
  }

  /** Leaves the room. Resolves when the server has confirmed it, or after a second. */
  async close(): Promise<void> {
    this.stopMedia();
    const { socket } = this;
    if (socket.readyState === WebSocket.OPEN) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, CLOSE_MS);
        socket.once('close', () => {
          clearTimeout(timer);
          resolve();
        });
        socket.close(1000);
      });
    }
    socket.terminate();
    await this.#pc.close();
  }

  #elapsed(): number {
    return performance.now() - this.#startedAt;
  }

  #choose(path: Path): void {
    const direct = this.announcedFor('udp') ?? '';
    if (path === 'udp') {
      // werift offers no loopback address by itself, and a node on this machine may announce only loopback.
      if (direct.startsWith('127.')) this.#pc.setConfiguration({ iceAdditionalHostAddresses: ['127.0.0.1'] });
      return;
    }
    const relay = this.relayFor(path);
    if (relay === undefined) return;
    const { serverAddr, serverPort, transport, username, password: credential } = relay;
    const urls = `${transport === 'tls' ? 'turns' : 'turn'}:${serverAddr}:${serverPort}?transport=${transport === 'udp' ? 'udp' : 'tcp'}`;
    this.#pc.setConfiguration({
      iceServers: [{ urls, username, credential }],
      iceTransportPolicy: 'relay',
      ...(direct.startsWith('127.') && transport === 'udp' ? { iceInterfaceAddresses: { udp4: '127.0.0.1' } } : {}),
    });
  }

  #receive(payload: Buffer): void {
    this.received += 1;
    this.firstMediaAt ??= performance.now();
    this.delays.push(delayOf(payload));
  }
}

function delayOf(payload: Buffer): number {
  return performance.timeOrigin + performance.now() - stampOf(payload) / 1_000;
}
