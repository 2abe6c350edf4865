// A participant without a browser: werift's peer connection, signalled over the peer websocket as by the SDKs.
import { openConnection, type Publisher, remoteOf, signal } from '@bloom/participant';
import { RTCRtpCodecParameters } from 'werift';
import WebSocket from 'ws';

export class WeriftClient {
  readonly socket: WebSocket;
  /** Close code of the websocket. */
  readonly closed: Promise<number>;
  /** Sequence numbers of the received packets. */
  readonly received: number[] = [];
  readonly #pc = openConnection({
    iceInterfaceAddresses: { udp4: '127.0.0.1' },
    iceAdditionalHostAddresses: ['127.0.0.1'],
    codecs: { video: [new RTCRtpCodecParameters({ mimeType: 'video/VP8', clockRate: 90_000, payloadType: 96 })] },
    // Nothing that Chromium has and plain clients lack.
    headerExtensions: {},
  });
  readonly #publisher: Publisher | undefined;

  private constructor(url: string, publisher: Publisher | undefined) {
    this.#publisher = publisher;
    this.#pc.onTrack.subscribe((track) => {
      track.onReceiveRtp.subscribe(({ header }) => this.received.push(header.sequenceNumber));
    });
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/socket/peer/websocket`);
    this.closed = new Promise((resolve) => this.socket.once('close', resolve));
  }

  /** Joins the token's room, publishes the track if any, subscribes to the others. Resolves when media can flow. */
  static async join(url: string, token: string, publisher?: Publisher): Promise<WeriftClient> {
    const client = new WeriftClient(url, publisher);
    await signal(client.#pc, client.socket, { token, publisher });
    return client;
  }

  /** Port of the media worker that has the room. */
  get mediaPort(): number {
    return remoteOf(this.#pc)[1];
  }

  async close(): Promise<void> {
    this.#publisher?.stop();
    this.socket.terminate();
    await this.#pc.close();
  }
}
