import fc from 'fast-check';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import type { ChannelName } from '@bloom/webrtc';
import { DataRouter, type DataRouterEvents, type OutgoingMessage } from './data-router.js';
import { readClientFrame } from './frame.js';

const ALL = { send: true, receive: true };
const chat: ChannelName = { label: 'chat', protocol: '', kind: { ordered: true } };

/** One client of the room, and what the router did to its channels. */
class Client {
  readonly got: { label: string; sender: string; text: string; message: OutgoingMessage }[] = [];
  readonly open = new Map<number, string>();
  takes = true;
  /** Channels that were opened towards it. */
  offers = 0;
  #nextOurs = 1;
  #nextOwn = 0;

  constructor(
    readonly id: string,
    readonly room: Room,
  ) {
    room.router.join(
      id,
      {
        open: ({ label }) => {
          this.offers++;
          const stream = this.#nextOurs;
          this.#nextOurs += 2;
          this.open.set(stream, label);
          return stream;
        },
        close: (stream) => void this.open.delete(stream),
        send: (message) => {
          const { frame, stream } = message;
          const length = frame[0] ?? 0;
          const sender = frame.toString('latin1', 1, 1 + length);
          const label = this.open.get(stream) ?? 'closed';
          if (this.takes) this.got.push({ label, sender, text: frame.toString('utf8', 1 + length), message });
          return this.takes;
        },
      },
      ALL,
    );
  }

  opens(channel: ChannelName = chat): number {
    const stream = this.#nextOwn;
    this.#nextOwn += 2;
    this.open.set(stream, channel.label);
    this.room.router.opened(this.id, stream, channel, this.room.nowMs);
    return stream;
  }

  closes(stream: number): void {
    this.open.delete(stream);
    this.room.router.closed(this.id, stream);
  }

  says(stream: number, text: string, to: readonly string[] = []): void {
    const header = String.fromCharCode(to.length) + to.map((id) => String.fromCharCode(id.length) + id).join('');
    this.sends(stream, Buffer.from(header + text));
  }

  sends(stream: number, frame: Buffer): void {
    this.room.router.message(this.id, stream, true, frame, this.room.nowMs);
  }

  get heard(): string[] {
    return this.got.splice(0).map(({ label, sender, text }) => `${label} ${sender}: ${text}`);
  }

  get labels(): string[] {
    return [...this.open.values()];
  }
}

class Room {
  nowMs = 1_000_000;
  readonly events: string[] = [];
  readonly heard: Parameters<DataRouterEvents['heard']>[] = [];
  readonly counters = {
    dataMessages: { received: 0, sent: 0 },
    dropped: { data_rate: 0, data_denied: 0, data_malformed: 0, data_unheard: 0, data_backlog: 0 },
  };
  readonly router = new DataRouter(
    {
      channelClosed: (peerId, label, reason) => this.events.push(`${peerId} ${label} ${reason}`),
      messageChannel: (peerId, open) => this.events.push(`${peerId} messages ${open}`),
      heard: (...message) => this.heard.push(message),
    },
    this.counters,
  );
}

let room: Room;
let [ann, bob, eve]: Client[] = [];
beforeEach(() => {
  room = new Room();
  [ann, bob, eve] = ['ann', 'bob', 'eve'].map((id) => new Client(id, room));
});

describe('data channels of a room', () => {
  test('opens a label towards everybody, including those who join later', () => {
    ann!.opens();
    const kim = new Client('kim', room);
    expect(bob!.labels).toEqual(['chat']);
    expect(eve!.labels).toEqual(['chat']);
    expect(kim.labels).toEqual(['chat']);
    expect(ann!.labels).toEqual(['chat']);
  });

  test('lists channels with the client that opened them and how messages are sent', () => {
    ann!.opens({ label: 'cursor', protocol: '', kind: { ordered: false, maxRetransmits: 0 } });
    const cursor = { label: 'cursor', ordered: false, maxRetransmits: 0 };
    expect(room.router.channels('ann')).toEqual([{ ...cursor, openedBy: 'client' }]);
    expect(room.router.channels('bob')).toEqual([{ ...cursor, openedBy: 'server' }]);
    expect(room.router.channels('nobody')).toEqual([]);
  });

  test('closes a label with the last client that opened it, on the channels that we opened', () => {
    const [hers, his] = [ann!.opens(), bob!.opens()];
    ann!.closes(hers);
    expect(ann!.labels).toEqual([]);
    expect(bob!.labels).toEqual(['chat', 'chat']);
    expect(eve!.labels).toEqual(['chat']);
    bob!.closes(his);
    expect(bob!.labels).toEqual([]);
    expect(eve!.labels).toEqual([]);
  });

  test("closes a client's labels when it leaves", () => {
    ann!.opens();
    room.router.leave('ann');
    expect(bob!.labels).toEqual([]);
  });

  test('does not offer a label to a client that closed our channel until the client opens it', () => {
    ann!.opens();
    bob!.closes(1);
    eve!.opens();
    expect(bob!.labels).toEqual([]);
    bob!.closes(bob!.opens());
    room.router.leave('ann');
    room.router.leave('eve');
    ann = new Client('ann', room);
    ann.opens();
    expect(bob!.labels).toEqual(['chat']);
  });

  test('replaces the first channel with a second one of the same label', () => {
    ann!.opens();
    ann!.opens();
    expect(ann!.labels).toEqual(['chat']);
    expect(room.events).toEqual([]);
  });

  test.each([
    ['an empty label', '', 'bad_label'],
    ['a label of 65 bytes', 'é'.repeat(33), 'bad_label'],
  ])('refuses %s', (_, label, reason) => {
    ann!.opens({ ...chat, label });
    expect(room.events).toEqual([`ann ${label} ${reason}`]);
    expect(ann!.labels).toEqual([]);
    expect(bob!.labels).toEqual([]);
  });

  test('lets a client open at most 16 labels, and all clients together at most 64', () => {
    for (let n = 0; n < 17; n++) ann!.opens({ ...chat, label: `ann-${n}` });
    expect(room.events).toEqual(['ann ann-16 too_many']);
    const opened = ['b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => {
      const client = new Client(name, room);
      for (let n = 0; n < 16; n++) client.opens({ ...chat, label: `${name}-${n}` });
      return client.labels.filter((label) => label.startsWith(name)).length;
    });
    // The fewer labels are left, the fewer a client may open, so the last one still gets one.
    expect(opened).toEqual([16, 16, 8, 4, 2, 1, 1]);
    bob!.opens();
    expect(room.events.at(-1)).toBe('bob chat too_many');
    bob!.opens({ ...chat, label: 'ann-0' });
    expect(bob!.labels).toContain('ann-0');
  });

  test('lets a client open 64 channels at once and 4 per second, however often it reopens a label', () => {
    for (let n = 0; n < 1_000; n++) ann!.opens();
    expect(bob!.offers).toBe(64);
    expect(eve!.offers).toBe(64);
    // The last accepted channel stays, and clients that open fewer are not affected.
    expect(bob!.labels).toEqual(['chat']);
    expect(ann!.labels).toEqual(['chat']);
    eve!.opens({ ...chat, label: 'eve' });
    expect(bob!.labels).toEqual(['chat', 'eve']);

    room.nowMs += 500;
    for (let n = 0; n < 1_000; n++) ann!.opens({ ...chat, label: '' });
    expect(room.events).toEqual(['ann  bad_label', 'ann  bad_label']);
    expect(room.counters.dropped.data_rate).toBe(936 + 998);
  });
});

describe('data channel messages', () => {
  test("sends messages to all others with the sender's id, on channels of the same kind", () => {
    const kind = { ordered: false, maxRetransmits: 0 };
    const stream = ann!.opens({ ...chat, kind });
    bob!.opens();
    ann!.says(stream, 'grüße');
    expect(bob!.got[0]?.message).toMatchObject({ kind, reliable: false, isText: true, stream: 0 });
    expect(eve!.got[0]?.message).toMatchObject({ kind, reliable: false, isText: true, stream: 1 });
    expect(ann!.heard).toEqual([]);
    expect(bob!.heard).toEqual(['chat ann: grüße']);
    expect(eve!.heard).toEqual(['chat ann: grüße']);
    expect(room.counters.dataMessages).toEqual({ received: 1, sent: 2 });
  });

  test('sends messages only to the listed receivers, skipping unknown ones and the sender', () => {
    const stream = ann!.opens();
    ann!.says(stream, 'psst', ['eve', 'nobody', 'ann', 'eve']);
    expect(ann!.heard).toEqual([]);
    expect(bob!.heard).toEqual([]);
    expect(eve!.heard).toEqual(['chat ann: psst']);
  });

  test('accepts messages on the channel that we opened', () => {
    ann!.opens();
    bob!.says(1, 'hello');
    expect(ann!.heard).toEqual(['chat bob: hello']);
  });

  test('limits messages to 1,000 per second and sender', () => {
    const stream = ann!.opens();
    for (let n = 0; n < 1_200; n++) ann!.says(stream, `${n}`);
    expect(bob!.got.length).toBe(1_000);
    room.nowMs += 100;
    for (let n = 0; n < 200; n++) ann!.says(stream, `${n}`);
    expect(bob!.got.length).toBe(1_100);
    expect(room.counters.dropped.data_rate).toBe(300);
    bob!.says(1, 'not limited by others');
    expect(ann!.got.length).toBe(1);
  });

  test('passes messages of 64 KiB and closes the channel on one more byte', () => {
    const stream = ann!.opens();
    ann!.sends(stream, Buffer.alloc(1 + 64 * 1024));
    expect(bob!.got.length).toBe(1);
    ann!.sends(stream, Buffer.alloc(2 + 64 * 1024));
    expect(bob!.got.length).toBe(1);
    expect(ann!.labels).toEqual([]);
    expect(room.events).toEqual(['ann chat too_large']);
  });

  test('drops messages with a broken header', () => {
    const stream = ann!.opens();
    for (const bytes of [[], [128], [1], [1, 5, 65], [2, 1, 65]]) ann!.sends(stream, Buffer.from(bytes));
    expect(bob!.got.length).toBe(0);
    expect(room.counters.dropped.data_malformed).toBe(5);
  });

  test('closes only the channel of the receiver whose queue a message does not fit', () => {
    const stream = ann!.opens();
    bob!.takes = false;
    ann!.says(stream, 'hello');
    expect(bob!.labels).toEqual([]);
    expect(eve!.labels).toEqual(['chat']);
    expect(room.events).toEqual(['bob chat backlog']);
    // The label is not reopened towards that receiver either until the receiver opens it.
    eve!.opens();
    expect(bob!.labels).toEqual([]);
    bob!.opens();
    expect(bob!.labels).toEqual(['chat']);
  });

  test('sends backend messages to clients that opened their label, on which no client can send', () => {
    const stream = ann!.opens({ ...chat, label: 'roomMessage' });
    expect(bob!.labels).toEqual([]);
    expect(room.events).toEqual(['ann messages true']);
    expect(room.router.fromBackend('ann', '{}')).toBe(true);
    expect(room.router.fromBackend('bob', '{}')).toBe(false);
    expect(ann!.heard).toEqual(['roomMessage : {}']);
    bob!.opens({ ...chat, label: 'roomMessage' });
    ann!.says(stream, 'forged', ['bob']);
    expect(bob!.heard).toEqual([]);
    expect(room.counters.dropped.data_denied).toBe(1);
    ann!.closes(stream);
    expect(room.router.fromBackend('ann', '{}')).toBe(false);
  });
});

describe('messages reported to the backend', () => {
  const toAll = (label: string, data: string | Uint8Array) => ({ label, to: [], data });

  test("reports exactly what is sent on the backend's labels, even if addressed to nobody", () => {
    const [chatting, gaming] = [ann!.opens(), ann!.opens({ ...chat, label: 'game' })];
    ann!.says(chatting, 'before');
    room.router.setDataEvents(['chat']);
    ann!.says(chatting, 'grüße');
    ann!.says(gaming, 'not this');
    ann!.says(chatting, 'for bob', ['bob', 'nobody']);
    room.router.message('ann', chatting, false, Buffer.from([0, 255, 7]), room.nowMs);
    ann!.sends(chatting, Buffer.from([200]));
    room.router.permit('ann', { send: false, receive: true });
    ann!.says(chatting, 'denied');
    room.router.permit('ann', ALL);
    for (const id of ['bob', 'eve']) room.router.leave(id);
    ann!.says(chatting, 'alone');
    room.router.setDataEvents([]);
    ann!.says(chatting, 'after');
    expect(room.heard).toEqual([
      ['ann', toAll('chat', 'grüße')],
      ['ann', { label: 'chat', to: ['bob', 'nobody'], data: 'for bob' }],
      ['ann', toAll('chat', Uint8Array.of(255, 7))],
      ['ann', toAll('chat', 'alone')],
    ]);
  });

  test('reports a limited rate of messages and bytes per sender, while clients receive all', () => {
    room.router.setDataEvents(['chat']);
    const [hers, his] = [ann!.opens(), bob!.opens()];
    for (let n = 0; n < 300; n++) ann!.says(hers, 'x');
    bob!.says(his, 'y');
    expect(room.heard.length).toBe(201);
    expect(bob!.got.length).toBe(300);
    expect(room.counters.dropped.data_unheard).toBe(100);
    room.nowMs += 1_000;
    for (let n = 0; n < 300; n++) ann!.says(hers, 'x');
    expect(room.heard.length).toBe(301);

    room.nowMs += 60_000;
    for (let n = 0; n < 10; n++) bob!.says(his, 'x'.repeat(64 * 1024));
    expect(room.heard.length).toBe(309);
    ann!.says(hers, 'still heard');
    expect(room.heard.length).toBe(310);
  });

  test('reports a limited number of messages and bytes per room', () => {
    room.router.setDataEvents(['chat']);
    const crowd = Array.from({ length: 20 }, (_, n) => new Client(`p${n}`, room));
    const streams = crowd.map((one) => one.opens());
    for (const [n, one] of crowd.entries()) for (let m = 0; m < 150; m++) one.says(streams[n]!, 'x');
    expect(room.heard.length).toBe(2_000);
    room.nowMs += 60_000;
    room.heard.length = 0;
    for (const [n, one] of crowd.entries()) for (let m = 0; m < 8; m++) one.says(streams[n]!, 'x'.repeat(64 * 1024));
    expect(room.heard.length).toBe(64);
  });
});

describe('data channel permissions', () => {
  test('applies permissions from the next message on', () => {
    const stream = ann!.opens();
    room.router.permit('ann', { send: false, receive: true });
    ann!.says(stream, 'refused');
    bob!.says(1, 'heard');
    room.router.permit('bob', { send: true, receive: false });
    room.router.permit('ann', ALL);
    ann!.says(stream, 'not for bob', ['bob', 'eve']);
    expect(ann!.heard).toEqual(['chat bob: heard']);
    expect(bob!.heard).toEqual([]);
    expect(eve!.heard).toEqual(['chat bob: heard', 'chat ann: not for bob']);
    expect(room.counters.dropped.data_denied).toBe(1);
  });

  test('passes nothing on for a lying client, whatever it sends', () => {
    const ids = ['ann', 'bob', 'eve'] as const;
    const step = fc.oneof(
      fc.record({ do: fc.constant('permit' as const), send: fc.boolean(), receive: fc.boolean() }),
      fc.record({ do: fc.constant('open' as const), label: fc.constantFrom('chat', 'roomMessage', 'game', '') }),
      fc.record({ do: fc.constant('close' as const), stream: fc.nat(8) }),
      fc.record({
        do: fc.constant('send' as const),
        stream: fc.nat(8),
        frame: fc.oneof(
          fc.uint8Array({ maxLength: 40 }),
          fc
            .constantFrom('\u0000x', '\u0003bobforged', '\u0001\u0003evex', '\u0000\u0003bobx')
            .map((text) => Buffer.from(text)),
        ),
      }),
      fc.record({ do: fc.constant('leave' as const) }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(...ids), step), { maxLength: 60 }), (steps) => {
        const world = new Room();
        const clients = new Map(ids.map((id) => [id as string, new Client(id, world)]));
        const may = new Map<string, typeof ALL>(ids.map((id) => [id, ALL]));
        for (const [id, action] of steps) {
          const client = clients.get(id)!;
          if (action.do === 'permit') {
            may.set(id, { send: action.send, receive: action.receive });
            world.router.permit(id, action);
          } else if (action.do === 'open') client.opens({ ...chat, label: action.label });
          else if (action.do === 'close') client.closes(action.stream);
          else if (action.do === 'leave') {
            clients.set(id, new Client(id, world));
            may.set(id, ALL);
          } else client.sends(action.stream, Buffer.from(action.frame));

          for (const [to, { got }] of clients) {
            for (const { sender, label } of got.splice(0)) {
              if (action.do !== 'send') throw new Error(`${to} got a message without one sent`);
              const wanted = readClientFrame(Buffer.from(action.frame))?.receivers;
              expect(sender).toBe(id);
              expect(label === 'closed' || label === 'roomMessage').toBe(false);
              expect(may.get(id)?.send).toBe(true);
              expect(may.get(to)?.receive).toBe(true);
              expect(to).not.toBe(id);
              expect(wanted?.has(to) ?? true).toBe(true);
            }
          }
        }
      }),
      { numRuns: fuzzRuns(300) },
    );
  });
});
