import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ChannelName } from '@bloom/webrtc';
import { DataRouter, type OutgoingMessage } from './data-router.js';
import { PlainData } from './plain-data.js';

const reliable: ChannelName = { label: '_reliable', protocol: '', kind: { ordered: true } };
const lossy: ChannelName = { label: '_lossy', protocol: '', kind: { ordered: false, maxRetransmits: 0 } };

const counters = () => ({
  dataMessages: { received: 0, sent: 0 },
  dropped: { data_rate: 0, data_denied: 0, data_malformed: 0, data_unheard: 0, data_backlog: 0 },
});

const openRoom = (): DataRouter =>
  new DataRouter({ channelClosed: () => {}, messageChannel: () => {}, heard: () => {} }, counters());

/** A client's channels, and what became of its messages. */
class Client {
  readonly heard: string[] = [];
  readonly closed: string[] = [];
  readonly sent: OutgoingMessage[] = [];
  readonly refused: number[] = [];
  readonly counters = counters();
  takes = true;
  readonly data: PlainData;

  constructor(room = openRoom()) {
    this.data = new PlainData(
      { labels: ['_reliable', '_lossy'], maySend: true, room },
      {
        message: (label, data) => void this.heard.push(`${label} ${Buffer.from(data).toString()}`),
        channelClosed: (label, reason) => void this.closed.push(`${label} ${reason}`),
      },
      this.counters,
    );
    this.data.join('a', {
      open: () => undefined,
      close: (stream) => void this.refused.push(stream),
      send: (message) => {
        if (this.takes) this.sent.push(message);
        return this.takes;
      },
    });
  }

  says(stream: number, text: string | Buffer, nowMs = 0): void {
    this.data.message('a', stream, false, Buffer.from(text), nowMs);
  }
}

describe('plain data channels', () => {
  test('pass messages without a header, in both directions and of the kind that the client chose', () => {
    const client = new Client();
    client.data.opened('a', 0, reliable);
    client.data.opened('a', 2, lossy);
    client.says(0, 'hello');
    client.says(2, 'psst');
    expect(client.heard).toEqual(['_reliable hello', '_lossy psst']);
    client.data.send('_lossy', Buffer.from('there'));
    expect(client.sent).toMatchObject([{ stream: 2, isText: false, reliable: false, frame: Buffer.from('there') }]);
  });

  test('close for other labels, and for a second channel of a label', () => {
    const client = new Client();
    client.data.opened('a', 0, { ...reliable, label: 'chat' });
    client.data.opened('a', 2, reliable);
    client.data.opened('a', 4, reliable);
    expect(client.refused).toEqual([0, 4]);
    expect(client.closed).toEqual(['chat bad_label', '_reliable too_many']);
  });

  test('drop and count messages that are too large, empty, too fast or not permitted', () => {
    const client = new Client();
    client.data.opened('a', 0, reliable);
    client.says(0, Buffer.alloc(64_001));
    client.says(0, '');
    expect(client.counters.dropped.data_malformed).toBe(2);
    for (let i = 0; i < 1_100; i++) client.says(0, 'x');
    expect(client.counters.dropped.data_rate).toBe(102);
    client.data.permit(false);
    client.says(0, 'x', 1_000);
    expect(client.counters.dropped.data_denied).toBe(1);
    expect(client.heard).toHaveLength(998);
  });

  test("limit a sender's bytes as well as its messages", () => {
    const client = new Client();
    client.data.opened('a', 0, reliable);
    for (let i = 0; i < 100; i++) client.says(0, Buffer.alloc(64_000));
    expect(client.counters.dropped.data_rate).toBeGreaterThan(30);
  });

  describe('of many clients', () => {
    const SENDERS = 10;
    let room: DataRouter;
    let senders: Client[];
    beforeEach(() => {
      room = openRoom();
      senders = Array.from({ length: SENDERS }, () => new Client(room));
      for (const client of senders) client.data.opened('a', 0, reliable);
    });
    const sum = (of: (client: Client) => number): number => senders.reduce((all, client) => all + of(client), 0);
    const heard = (): number => sum((client) => client.heard.length);
    const dropped = (): number => sum((client) => client.counters.dropped.data_rate);

    test("are limited by the room's messages, and count what they drop", () => {
      for (const client of senders) for (let i = 0; i < 1_000; i++) client.says(0, 'x');
      expect(heard()).toBe(4_000);
      expect(dropped()).toBe(6_000);
      for (const client of senders) for (let i = 0; i < 1_000; i++) client.says(0, 'x', 500);
      expect(heard()).toBe(5_000);
    });

    test("are limited by the room's bytes", () => {
      for (const client of senders) for (let i = 0; i < 60; i++) client.says(0, Buffer.alloc(64_000));
      expect(heard()).toBe(Math.floor((16 * 1024 * 1024) / 64_000));
    });

    test('affect no other room', () => {
      for (const client of senders) for (let i = 0; i < 1_000; i++) client.says(0, 'x');
      const elsewhere = new Client();
      elsewhere.data.opened('a', 0, reliable);
      elsewhere.says(0, 'x');
      expect(elsewhere.heard).toHaveLength(1);
    });

    test('without permission take nothing from the others', () => {
      const [first, ...muted] = senders;
      for (const client of muted) {
        client.data.permit(false);
        for (let i = 0; i < 1_000; i++) client.says(0, 'x');
      }
      first!.says(0, 'x');
      expect(first!.heard).toHaveLength(1);
    });
  });

  test('keep what is sent before the client has opened a channel, in order, and nothing after it was closed', () => {
    const client = new Client();
    for (const text of ['one', 'two']) client.data.send('_reliable', Buffer.from(text));
    client.data.send('_lossy', Buffer.from('fast'));
    client.data.send('other', Buffer.from('lost'));
    client.data.opened('a', 0, reliable);
    client.data.send('_reliable', Buffer.from('three'));
    const sent = () => client.sent.map(({ stream, frame }) => `${stream} ${frame.toString()}`);
    expect(sent()).toEqual(['0 one', '0 two', '0 three']);
    client.data.closed('a', 0);
    client.data.send('_reliable', Buffer.from('gone'));
    client.data.opened('a', 2, reliable);
    expect(sent()).toHaveLength(3);
    client.data.opened('a', 4, lossy);
    expect(sent().at(-1)).toBe('4 fast');
  });

  test.each([
    ['256 messages', 'x', 1_000, 256],
    ['256 KiB', 'x'.repeat(64_000), 1_000, 4],
  ])('keep at most %s for a client that opens no channel, and count what they drop', (_bound, text, count, kept) => {
    const client = new Client();
    for (let i = 0; i < count; i++) client.data.send('_reliable', Buffer.from(text));
    expect(client.counters.dropped.data_backlog).toBe(count - kept);
    client.data.opened('a', 0, reliable);
    expect(client.sent).toHaveLength(kept);
  });

  test('keep nothing for a client whose association has ended', () => {
    const client = new Client();
    client.data.leave();
    for (let i = 0; i < 1_000; i++) client.data.send('_reliable', Buffer.from('x'));
    expect(client.counters.dropped.data_backlog).toBe(0);
  });

  test('close a channel whose client reads too slowly', () => {
    const client = new Client();
    client.data.opened('a', 0, reliable);
    client.takes = false;
    client.data.send('_reliable', Buffer.from('x'));
    client.data.send('_reliable', Buffer.from('y'));
    expect(client.closed).toEqual(['_reliable backlog']);
  });

  test('are opened by the server where the client expects that', () => {
    const opened: ChannelName[] = [];
    const sent: OutgoingMessage[] = [];
    const data = new PlainData(
      { labels: [], opens: [reliable, lossy], maySend: true, room: openRoom() },
      { message: () => {}, channelClosed: () => {} },
      counters(),
    );
    data.join('a', {
      open: (channel) => opened.push(channel),
      close: () => {},
      send: (message) => sent.push(message) > 0,
    });
    data.send('_lossy', Buffer.from('x'));
    expect(opened).toEqual([reliable, lossy]);
    expect(sent).toMatchObject([{ stream: 2, reliable: false }]);
    expect(data.channels()).toMatchObject([
      { label: '_reliable', openedBy: 'server' },
      { label: '_lossy', openedBy: 'server' },
    ]);
  });
});
