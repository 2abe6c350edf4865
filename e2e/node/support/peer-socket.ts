// A client of the peer websocket without a browser, for signalling only.
import { once } from 'node:events';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import WebSocket, { type ClientOptions } from 'ws';

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of the node under test
export type MediaEvent = { type: string; data?: any };

export class PeerConnection {
  /** `<code> <reason>` */
  readonly closed: Promise<string>;
  readonly received: MediaEvent[] = [];
  #wake: () => void = () => undefined;

  private constructor(readonly socket: WebSocket) {
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`.trim()));
    });
    socket.on('error', () => undefined);
    socket.on('message', (data) => {
      const message = decodePeerMessage(data as Buffer);
      this.received.push(
        message.type === 'mediaEvent' ? (JSON.parse(message.data) as MediaEvent) : { type: message.type },
      );
      this.#wake();
    });
  }

  static async open(url: string, options: ClientOptions = {}): Promise<PeerConnection> {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/socket/peer/websocket`, options);
    const connection = new PeerConnection(socket);
    await once(socket, 'open');

    return connection;
  }

  /** Opens a socket whose token is accepted. */
  static async authenticated(url: string, token: string, options: ClientOptions = {}): Promise<PeerConnection> {
    const connection = await PeerConnection.open(url, options);
    connection.token(token);
    await connection.#answer('authenticated');

    return connection;
  }

  /** Opens a socket and joins the media session with this metadata. */
  static async joined(url: string, token: string, metadata: unknown): Promise<PeerConnection> {
    const connection = await PeerConnection.authenticated(url, token);
    connection.send({ type: 'connect', data: { metadata } });
    await connection.#answer('connected');

    return connection;
  }

  token(token: string): void {
    this.socket.send(encodePeerMessage({ type: 'authRequest', token }));
  }

  send(event: MediaEvent): void {
    this.socket.send(encodePeerMessage({ type: 'mediaEvent', data: JSON.stringify(event) }));
  }

  /** Resolves with the first event of the type, past or future. */
  async next(type: string): Promise<MediaEvent> {
    for (;;) {
      const found = this.received.find((event) => event.type === type);
      if (found !== undefined) return found;
      await this.changed();
    }
  }

  /** Resolves with the first event of the type; rejects if the socket closes before it. */
  #answer(type: string): Promise<MediaEvent> {
    const isClosed = this.closed.then((why) => Promise.reject(new Error(`closed before ${type}: ${why}`)));

    return Promise.race([this.next(type), isClosed]);
  }

  /** Resolves with the next event. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
