import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';

const LOOPBACK = '127.0.0.1';

interface RtpRelayOptions {
  /** RTP port; the next one is for RTCP. */
  port: number;
  /** RTP port of the native library on the loopback interface; the next one is for RTCP. */
  clientPort: number;
  /** Remote address of the RTSP connection. */
  camera: string;
}

/**
 * Ports for one stream of RTP over UDP between the camera and the native library. Only datagrams from these two are
 * accepted; others are dropped and counted. Nothing is accepted until the camera has named its port.
 */
export class RtpRelay {
  readonly port: number;
  /** Number of datagrams from other addresses and ports. */
  refused = 0;
  readonly #clientPort: number;
  readonly #camera: string;
  readonly #sockets: [rtp: Socket, rtcp: Socket];
  /** The camera's ports; 0 while they are unknown. Undefined before the camera has agreed. */
  #cameraPorts: [rtp: number, rtcp: number] | undefined;

  private constructor({ port, clientPort, camera }: RtpRelayOptions, sockets: [Socket, Socket]) {
    this.port = port;
    this.#clientPort = clientPort;
    this.#camera = bare(camera);
    this.#sockets = sockets;
    for (const [at, socket] of sockets.entries()) {
      socket.on('error', () => undefined);
      socket.on('message', (data, from) => this.#receive(at as 0 | 1, data, from));
    }
  }

  /** @throws Error when a port is in use */
  static async open(options: RtpRelayOptions): Promise<RtpRelay> {
    const type = options.camera.includes(':') && !options.camera.startsWith(MAPPED) ? 'udp6' : 'udp4';
    const sockets: [Socket, Socket] = [createSocket(type), createSocket(type)];
    try {
      for (const [at, socket] of sockets.entries()) await once(socket.bind(options.port + at), 'listening');
    } catch (error) {
      for (const socket of sockets) socket.close();
      throw error;
    }

    return new RtpRelay(options, sockets);
  }

  /** Accepts media from now on. A camera need not name its port; the first port it sends from is then taken. */
  agree(serverPort: number | undefined): void {
    this.#cameraPorts = serverPort === undefined ? [0, 0] : [serverPort, serverPort + 1];
  }

  close(): void {
    for (const socket of this.#sockets.splice(0)) socket.close();
  }

  #receive(at: 0 | 1, data: Buffer, from: RemoteInfo): void {
    const address = bare(from.address);
    const ports = this.#cameraPorts;
    const socket = this.#sockets[at];
    if (address === LOOPBACK && from.port === this.#clientPort + at) {
      if (ports !== undefined && ports[at] !== 0) socket?.send(data, ports[at], this.#camera);
    } else if (ports !== undefined && address === this.#camera && (ports[at] === 0 || from.port === ports[at])) {
      ports[at] = from.port;
      const client = from.family === 'IPv6' ? `${MAPPED}${LOOPBACK}` : LOOPBACK;
      socket?.send(data, this.#clientPort + at, client);
    } else {
      this.refused += 1;
    }
  }
}

const MAPPED = '::ffff:';

/** Returns an address without its zone, and an IPv4-mapped address as plain IPv4. */
function bare(address: string): string {
  return address.replace(/%.*$/, '').replace(MAPPED, '');
}
