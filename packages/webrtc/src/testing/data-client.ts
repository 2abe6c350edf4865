import { SCTP } from 'werift-sctp';
import { type ChannelKind, type ChannelName, writeAck, writeOpen } from '../data/dcep.js';

const DCEP = 50;
const TEXT = 51;
const BINARY = 53;
const RELIABLE: ChannelKind = { ordered: true };

/** A message that the client received from the server. */
export interface DataMessage {
  stream: number;
  text: boolean;
  data: Buffer;
}

/** A data channel client for tests, on unpatched werift SCTP. Sends packets to the server through `send`. */
export class DataClient {
  readonly sctp: SCTP;
  readonly #transport: { onData?: (packet: Buffer) => void; send(packet: Buffer): Promise<void>; close(): void };
  /** Streams opened by the server, with the announcement as sent. */
  readonly opened = new Map<number, Buffer>();
  readonly confirmed = new Set<number>();
  readonly messages: DataMessage[] = [];
  readonly reset: number[] = [];
  onMessage: (message: DataMessage) => void = (message) => this.messages.push(message);
  onChange: () => void = () => undefined;

  constructor(send: (packet: Buffer) => void) {
    this.#transport = {
      send: (packet) => {
        send(packet);
        return Promise.resolve();
      },
      close: () => undefined,
    };
    this.sctp = SCTP.client(this.#transport, 5_000);
    this.sctp.onReceive.subscribe((stream, protocol, data) => {
      if (protocol !== DCEP) this.onMessage({ stream, text: protocol === TEXT, data: Buffer.from(data) });
      else if (data[0] === writeAck()[0]) this.confirmed.add(stream);
      else {
        this.opened.set(stream, Buffer.from(data));
        void this.sctp.send(stream, DCEP, writeAck(), RELIABLE);
      }
      this.onChange();
    });
    this.sctp.onReconfigStreams.subscribe((streams) => {
      this.reset.push(...streams);
      this.onChange();
    });
  }

  connect(): Promise<unknown> {
    const connected = this.sctp.stateChanged.connected.asPromise();
    void this.sctp.start(5_000);
    return connected;
  }

  receive(packet: Buffer): void {
    this.#transport.onData?.(packet);
  }

  open(stream: number, channel: Partial<ChannelName> & { label: string }): void {
    void this.sctp.send(stream, DCEP, writeOpen({ protocol: '', kind: RELIABLE, ...channel }), RELIABLE);
  }

  send(stream: number, message: string | Buffer, kind: ChannelKind = RELIABLE): void {
    void this.sctp.send(stream, typeof message === 'string' ? TEXT : BINARY, Buffer.from(message), kind);
  }

  close(stream: number): void {
    this.sctp.reconfigQueue.push(stream);
    void this.sctp.transmitReconfigRequest();
  }

  /** Resolves when the condition holds; checks it after each event. */
  async until(holds: () => boolean): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve) => {
      const before = this.onChange;
      this.onChange = () => {
        before();
        if (!holds()) return;
        this.onChange = before;
        resolve();
      };
    });
  }

  async end(): Promise<void> {
    await this.sctp.stop();
  }
}
