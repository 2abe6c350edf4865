import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { crc32c } from 'werift-sctp/lib/common/src/crc.js';
import { DataClient } from '../testing/data-client.js';
import { DataLink, type DataLinkHandlers } from './data-link.js';
import type { ChannelKind, ChannelName } from './dcep.js';

const RELIABLE: ChannelKind = { ordered: true };
const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** A link and a client. `lossy` decides which packets to the client are lost. */
class Pair {
  readonly opened: { stream: number; channel: ChannelName }[] = [];
  readonly received: { stream: number; isText: boolean; message: string }[] = [];
  readonly closed: number[] = [];
  readonly downs: string[] = [];
  packets = 0;
  hasTurns = true;
  /** Decides which of the client's packets are held back. */
  isLate: (packet: Buffer) => boolean = () => false;
  readonly late: Buffer[] = [];
  readonly client: DataClient;
  readonly link: DataLink;

  constructor(lost: (packet: Buffer, number: number) => boolean = () => false, role: { isDtlsClient?: boolean } = {}) {
    this.client = new DataClient((packet) => {
      if (this.isLate(packet)) this.late.push(Buffer.from(packet));
      else setImmediate(() => this.link.receive(Buffer.from(packet)));
    });
    const handlers: DataLinkHandlers = {
      send: (packet) => {
        const copy = Buffer.from(packet);
        if (!lost(packet, ++this.packets)) setImmediate(() => this.client.receive(copy));
      },
      inTurn: (step) => {
        if (this.hasTurns) setImmediate(step);
        return this.hasTurns;
      },
      onUp: () => this.client.onChange(),
      onOpened: (stream, channel) => this.opened.push({ stream, channel }),
      onMessage: (stream, isText, message) => {
        this.received.push({ stream, isText, message: message.toString() });
        this.client.onChange();
      },
      onClosed: (stream) => {
        this.closed.push(stream);
        this.client.onChange();
      },
      onDropped: () => undefined,
      onDown: (cause) => {
        this.downs.push(cause);
        this.client.onChange();
      },
    };
    this.link = new DataLink(handlers, role);
    ends.push(() => {
      this.link.end();
      void this.client.end();
    });
  }

  async connected(): Promise<this> {
    await this.client.connect();
    await this.client.until(() => this.link.isUp);
    return this;
  }
}

/** Returns one packet with the chunks of all packets. */
function bundle(packets: readonly Buffer[]): Buffer {
  const whole = Buffer.concat(packets.map((packet, at) => packet.subarray(at === 0 ? 0 : 12)));
  whole.writeUInt32LE(0, 8);
  whole.writeUInt32LE(crc32c(whole), 8);
  return whole;
}

describe('the data channels of one client', () => {
  test('opens the channels that the client opens and receives their messages', async () => {
    const { client, received, opened } = await new Pair().connected();
    const kind = { ordered: false, maxRetransmits: 0 };
    client.open(0, { label: 'chat', protocol: 'v1', kind });
    client.send(0, 'text');
    client.send(0, Buffer.from('bytes'));
    await client.until(() => received.length === 2);
    expect(opened).toEqual([{ stream: 0, channel: { label: 'chat', protocol: 'v1', kind } }]);
    expect(received).toEqual([
      { stream: 0, isText: true, message: 'text' },
      { stream: 0, isText: false, message: 'bytes' },
    ]);
    await client.until(() => client.confirmed.has(0));
  });

  test('opens channels on odd streams and sends on them before they are confirmed', async () => {
    const { client, link } = await new Pair().connected();
    const streams = [1, 2].map((n) => link.open({ label: `l${n}`, protocol: '', kind: RELIABLE }));
    expect(streams).toEqual([1, 3]);
    link.send({ stream: 3, isText: true, reliable: true, frame: Buffer.from('early'), kind: RELIABLE });
    await client.until(() => client.messages.length === 1);
    expect([...client.opened.keys()]).toEqual([1, 3]);
    expect(client.messages[0]).toEqual({ stream: 3, text: true, data: Buffer.from('early') });
  });

  test('opens channels on even streams as the DTLS client, and takes those of the other side on odd ones', async () => {
    const { client, link, opened, closed } = await new Pair(undefined, { isDtlsClient: true }).connected();
    expect([1, 2].map((n) => link.open({ label: `l${n}`, protocol: '', kind: RELIABLE }))).toEqual([0, 2]);
    client.open(1, { label: 'odd' });
    await client.until(() => opened.length === 1);
    expect(opened).toMatchObject([{ stream: 1, channel: { label: 'odd' } }]);
    expect(closed).toEqual([]);
  });

  test('sends a message on the next tick if the first attempt to queue it failed', async () => {
    const pair = await new Pair().connected();
    const { client, link } = pair;
    const stream = link.open({ label: 'late', protocol: '', kind: RELIABLE }) as number;
    await client.until(() => client.opened.size === 1);
    pair.hasTurns = false;
    link.send({ stream, isText: true, reliable: true, frame: Buffer.from('late'), kind: RELIABLE });
    // Wait until everything is acknowledged: an acknowledgement would trigger sending the message.
    await setTimeout(300);
    expect(client.messages).toEqual([]);
    pair.hasTurns = true;
    link.tick();
    await client.until(() => client.messages.length === 1);
    expect(link.waitingBytes).toBe(0);
  });

  test('sends a message of 64 KiB in fragments and receives one', async () => {
    const { client, link, received } = await new Pair().connected();
    const stream = link.open({ label: 'big', protocol: '', kind: RELIABLE }) as number;
    const frame = Buffer.alloc(64 * 1024, 'x');
    link.send({ stream, isText: false, reliable: true, frame, kind: RELIABLE });
    await client.until(() => client.messages.length === 1);
    expect(client.messages[0]?.data.equals(frame)).toBe(true);
    client.send(stream, frame);
    await client.until(() => received.length === 1);
    expect(received[0]?.message.length).toBe(frame.length);
  });

  test('closes channels from either side, after which their streams can be reused', async () => {
    const { client, link, closed, opened } = await new Pair().connected();
    client.open(0, { label: 'a' });
    client.open(2, { label: 'b' });
    await client.until(() => client.confirmed.size === 2);
    client.close(0);
    await client.until(() => closed.length === 1 && client.reset.length >= 2);
    expect(closed).toEqual([0]);
    client.confirmed.clear();
    client.open(0, { label: 'again' });
    await client.until(() => client.confirmed.has(0));
    expect(opened.map(({ channel }) => channel.label)).toEqual(['a', 'b', 'again']);
    link.close(2);
    await client.until(() => client.reset.includes(2));
    expect(closed).toEqual([0]);
    expect(link.channels).toBe(1);
  });

  test('keeps a channel that the client reopened before its response to our reset arrived', async () => {
    const pair = await new Pair().connected();
    const { client, link, received, closed } = pair;
    client.open(0, { label: 'a' });
    await client.until(() => client.confirmed.has(0));
    client.confirmed.clear();
    // The client's response: a RECONFIG (130) with a parameter of type 16.
    pair.isLate = (packet) => packet[12] === 130 && packet.readUInt16BE(16) === 16;
    client.close(0);
    await client.until(() => pair.late.length === 1 && closed.length === 1);
    client.open(0, { label: 'b' });
    await client.until(() => client.confirmed.has(0));
    for (const packet of pair.late) link.receive(packet);
    link.send({ stream: 0, isText: true, reliable: true, frame: Buffer.from('to'), kind: RELIABLE });
    client.send(0, 'from');
    await client.until(() => received.length === 1 && client.messages.length === 1);
    expect(link.channels).toBe(1);
    expect(closed).toEqual([0]);
  });

  test('refuses a channel on one of our streams, and one whose DCEP message it cannot read', async () => {
    const { client, opened } = await new Pair().connected();
    client.open(7, { label: 'odd' });
    client.open(2, { label: 'x'.repeat(65) });
    await client.until(() => client.reset.includes(7) && client.reset.includes(2));
    expect(opened).toEqual([]);
  });

  test('processes the packets behind a bundle in order and reports none of them as lost', async () => {
    const gaps: number[] = [];
    const pair = await new Pair((packet) => {
      // Number of gaps in a SACK (3).
      if (packet[12] === 3) gaps.push(packet.readUInt16BE(24));
      return false;
    }).connected();
    const { client, link, received } = pair;
    client.open(0, { label: 'many' });
    await client.until(() => client.confirmed.has(0));
    pair.isLate = (packet) => packet[12] === 0;
    Object.assign(client.sctp, { cwnd: 1e6 });
    const messages = Array.from({ length: 12 }, (_, n) => `${n}`);
    for (const message of messages) {
      client.send(0, message, { ordered: false });
      await setTimeout(0);
    }
    gaps.splice(0);
    // All in one turn, as the media port delivers them.
    const late = pair.late.splice(0);
    for (const packet of [bundle(late.slice(0, 6)), ...late.slice(6)]) link.receive(packet);
    await client.until(() => received.length === messages.length);
    expect(received.map(({ message }) => message)).toEqual(messages);
    expect(gaps).toEqual(Array.from({ length: 7 }, () => 0));
  });

  test('reports the end of the association once, and ignores everything after it', async () => {
    const pair = await new Pair().connected();
    await pair.client.end();
    await pair.client.until(() => pair.downs.length === 1);
    expect(pair.link.isUp).toBe(false);
    expect(pair.link.receive(Buffer.alloc(100))).toBe(false);
    expect(pair.downs).toEqual(['client']);
  });

  test('loses no reliable message when one packet in fifty is lost', async () => {
    const { client, link } = await new Pair((_packet, number) => number % 50 === 13).connected();
    const stream = link.open({ label: 'r', protocol: '', kind: RELIABLE }) as number;
    for (let n = 0; n < 500; n++) {
      link.send({ stream, isText: true, reliable: true, frame: Buffer.from(`${n}`), kind: RELIABLE });
    }
    await client.until(() => client.messages.length === 500);
    expect(client.messages.map(({ data }) => Number(data.toString()))).toEqual(
      Array.from({ length: 500 }, (_, n) => n),
    );
  });
});
