import type { RTCPeerConnection } from 'werift';
import { Publisher } from '@bloom/participant';
import { connection } from '../sfu/client.js';
import type { BloomServer } from '../sfu/servers/bloom.js';
import { Sink } from '../sfu/sink.js';

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export interface Shape {
  rooms: number;
  /** Subscribers of each room. */
  subscribers: number;
  kind: 'audio' | 'video';
  bytes: number;
}

const AT_ONCE = 5;

/** Lets clients join and leave the server's room. Calls `gone` after each group. */
export async function comeAndGo(server: BloomServer, count: number, gone?: (done: number) => void): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) {
    const group = Array.from({ length: AT_ONCE }, () => connection());
    const leave = await Promise.all(group.map((pc) => server.visit(pc)));
    await Promise.all(group.map((pc) => pc.close()));
    await Promise.all(leave.map((each) => each()));
    gone?.(done + AT_ONCE);
  }
}

/** Rooms with one publisher and some subscribers each, on one server, under one load. */
export class Rooms {
  readonly publishers: Publisher[] = [];
  readonly #connections: RTCPeerConnection[] = [];
  readonly #receivers: RTCPeerConnection[] = [];
  #sink: Sink | undefined;

  constructor(
    readonly server: BloomServer,
    readonly shape: Shape,
  ) {}

  async open(): Promise<void> {
    for (let room = 0; room < this.shape.rooms; room += 1) {
      if (room > 0) await this.server.nextRoom();
      const source = connection();
      const publisher = new Publisher(this.shape.kind, this.shape.bytes);
      this.publishers.push(publisher);
      this.#connections.push(source);
      await this.server.publish(source, publisher);
      for (let i = 0; i < this.shape.subscribers; i += 1) this.#receivers.push(await this.join());
    }
    this.#sink = new Sink(this.#receivers);
  }

  /** Adds an unmeasured client to the last room. */
  async join(): Promise<RTCPeerConnection> {
    const receiver = connection();
    this.#connections.push(receiver);
    await this.server.subscribe(receiver);
    return receiver;
  }

  get sink(): Sink {
    if (this.#sink === undefined) throw new Error('the rooms are not open');
    return this.#sink;
  }

  /** Starts sending this number of packets per second, summed over all subscribers. */
  start(packetsPerSecondOut: number): void {
    const subscribers = this.shape.rooms * this.shape.subscribers;
    for (const publisher of this.publishers) publisher.start(packetsPerSecondOut / subscribers);
  }

  get wanted(): number {
    return this.publishers.reduce((sum, { sent }) => sum + sent, 0) * this.shape.subscribers;
  }

  async close(): Promise<void> {
    for (const publisher of this.publishers) publisher.stop();
    await this.#sink?.close();
    for (const pc of this.#connections) await pc.close();
  }
}
