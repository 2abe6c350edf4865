import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  type AddressInfo,
  connect as connectTcp,
  createServer,
  isIP,
  type LookupFunction,
  type Server,
  type Socket,
} from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemResolver } from '@bloom/discovery';
import { type Clock, inTime } from '@bloom/time';
import { ComponentError } from '../../errors.js';
import type { SourceUri } from '../source-uri.js';
import { GateDialog } from './gate-dialog.js';
import { RtpRelay } from './rtp-relay.js';
import { RtspSplitter, writeMessage } from './rtsp-splitter.js';

const LOOPBACK = '127.0.0.1';
/** Maximum number of RTP-over-UDP streams. */
const MAX_RELAYS = 2;
/** Above this backlog, reading pauses until the other side has caught up. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** Time limit for saying goodbye to a camera. */
const FAREWELL_MS = 300;

/**
 * A loopback port where the native library finds the camera. Everything the camera sends passes through here: messages
 * are checked against limits before they are stored, and RTP over UDP is accepted only from the camera.
 */
export class RtspGate {
  /** Address of the camera as given to the native library. */
  readonly uri: string;
  readonly #firstPort: number;
  readonly #server: Server;
  readonly #dialog: GateDialog;
  readonly #clock: Clock;
  readonly #lookup: LookupFunction;
  #client: Socket | undefined;
  #camera: Socket | undefined;
  #target: SourceUri;
  #relays: RtpRelay[] = [];
  #failure: string | undefined;

  private constructor({ source, address, rtpPort, clock }: RtspGateOptions, server: Server) {
    this.#target = source;
    this.#firstPort = rtpPort;
    this.#clock = clock;
    this.#server = server;
    this.#lookup = (host, options, callback) => {
      if (host !== source.host || address === undefined) systemResolver().lookup(host, options, callback);
      else if (options.all === true) callback(null, [{ address, family: isIP(address) }]);
      else callback(null, address, isIP(address));
    };
    this.uri = `rtsp://${LOOPBACK}:${(server.address() as AddressInfo).port}/${randomBytes(16).toString('hex')}`;
    this.#dialog = new GateDialog(source, this.uri, {
      toClient: (message) => void this.#client?.write(writeMessage(message)),
      toCamera: (message) => void this.#connected().write(writeMessage(message)),
      moveTo: (target) => {
        this.#target = target;
        this.#camera?.destroy();
        this.#camera = undefined;
      },
      openPorts: (clientPort) => this.#openPorts(clientPort),
      agree: (port, serverPort) => this.#relays.find((relay) => relay.port === port)?.agree(serverPort),
    });
    server.on('connection', (socket) => this.#welcome(socket));
  }

  static async open(options: RtspGateOptions): Promise<RtspGate> {
    const server = createServer().listen(0, LOOPBACK);
    await once(server, 'listening');

    return new RtspGate(options, server);
  }

  /** Why the connection ended; undefined when the native library knows the reason better. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** True when RTP came from an address other than the camera's. */
  get refusedRtp(): boolean {
    return this.#relays.some(({ refused }) => refused > 0);
  }

  /** Resolves when everything the native library has written has been sent, or a TEARDOWN in its place. Idempotent. */
  async close(): Promise<void> {
    this.#server.close();
    const [client, camera] = [this.#client, this.#camera];
    if (client !== undefined && camera !== undefined && !camera.destroyed) {
      const limit = { timeoutMs: FAREWELL_MS, late: () => undefined, clock: this.#clock };
      // The native library closes its end once it has said goodbye.
      const isDone = client.readableEnded || client.destroyed;
      if (!isDone) await inTime(new Promise<void>((resolve) => client.once('end', resolve)), limit);
      this.#leave();
      await inTime(new Promise<void>((resolve) => camera.once('close', resolve).end(resolve)), limit);
    }
    client?.destroy();
    camera?.destroy();
    for (const relay of this.#relays.splice(0)) relay.close();
  }

  /** Accepts the first connection that starts with a request of the native library. */
  #welcome(socket: Socket): void {
    socket.on('error', () => undefined);
    const splitter = new RtspSplitter({
      onMessage: (message) => {
        if (this.#client === undefined && this.#dialog.isClient(message)) {
          this.#client = socket;
          this.#server.close();
          socket.once('close', () => {
            this.#leave();
            this.#camera?.end();
          });
        }
        if (this.#client === socket) void this.#dialog.fromClient(message).catch(this.#fail);
        else socket.destroy();
      },
      onMedia: (bytes) => {
        if (this.#client === socket) void this.#camera?.write(bytes);
      },
    });
    this.#read(socket, splitter, () => this.#camera);
  }

  /** On a busy machine the native library is interrupted before it has said goodbye. */
  #leave(): void {
    if (this.#camera?.writable === true) this.#dialog.leave();
  }

  /** Returns the connection to the camera, and opens it on first use. */
  #connected(): Socket {
    if (this.#camera !== undefined) return this.#camera;
    const { host, scheme, port } = this.#target;
    const at = { host, port, lookup: this.#lookup };
    // Cameras have self-signed certificates, often with keys too short for OpenSSL's default rules.
    const socket =
      scheme === 'rtsps'
        ? connectTls({ ...at, rejectUnauthorized: false, ciphers: 'DEFAULT@SECLEVEL=0', minVersion: 'TLSv1' })
        : connectTcp(at);
    socket.setNoDelay(true);
    this.#camera = socket;
    const splitter = new RtspSplitter({
      onMessage: (message) => {
        if (socket === this.#camera) this.#dialog.fromCamera(message);
      },
      onMedia: (bytes) => {
        if (socket === this.#camera) void this.#client?.write(bytes);
      },
    });
    this.#read(socket, splitter, () => this.#client);
    socket.once('error', (error) => {
      if (socket === this.#camera) this.#fail(error);
    });
    socket.once('close', () => {
      if (socket === this.#camera) this.#client?.end();
    });

    return socket;
  }

  #read(socket: Socket, splitter: RtspSplitter, other: () => Socket | undefined): void {
    socket.on('data', (bytes: Buffer) => {
      try {
        splitter.push(bytes);
      } catch (error) {
        return this.#fail(error);
      }
      const receiver = other();
      if (receiver === undefined || receiver.writableLength < MAX_UNSENT_BYTES) return;
      socket.pause();
      receiver.once('drain', () => socket.resume());
    });
  }

  readonly #fail = (error: unknown): void => {
    if (!(error instanceof Error)) throw error;
    // A failed attempt at several addresses has no message.
    this.#failure ??= error.message || String((error as NodeJS.ErrnoException).code);
    this.#camera?.destroy();
    this.#client?.destroy();
  };

  async #openPorts(clientPort: number): Promise<number | undefined> {
    const camera = this.#camera?.remoteAddress;
    const port = this.#firstPort + 2 * this.#relays.length;
    if (camera === undefined || this.#relays.length >= MAX_RELAYS) return undefined;
    try {
      this.#relays.push(await RtpRelay.open({ port, clientPort, camera }));

      return port;
    } catch (cause) {
      const message = `the ports from ${this.#firstPort} for RTP over UDP are in use: choose another rtpPort`;
      throw new ComponentError('BAD_RTSP', message, { cause });
    }
  }
}

interface RtspGateOptions {
  source: SourceUri;
  /** Address of the source's host, if known. Hosts of redirects are looked up. */
  address: string | undefined;
  /** First of the ports for RTP over UDP. */
  rtpPort: number;
  clock: Clock;
}
