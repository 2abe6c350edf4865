import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ChannelName } from '@bloom/webrtc';
import { type DataCounters, type DataPort, DataRouter, type OutgoingMessage } from './data-router.js';

const CHAT: ChannelName = { label: 'chat', protocol: '', kind: { ordered: true } };
const CURSOR: ChannelName = { label: 'cursor', protocol: '', kind: { ordered: false, maxRetransmits: 0 } };
const EVERYTHING = { send: true, receive: true };

/** A client whose channels are recorded. */
class Client implements DataPort {
  readonly channels = new Map<number, string>();
  readonly heard: string[] = [];
  #next = 100;

  open({ label }: ChannelName): number {
    this.channels.set(++this.#next, label);
    return this.#next;
  }

  close(stream: number): void {
    this.channels.delete(stream);
  }

  send({ frame, stream }: OutgoingMessage): boolean {
    // The sender's id with its length precedes the message.
    const length = frame[0]!;
    this.heard.push(`${stream} ${frame.toString('latin1', 1, 1 + length)}: ${frame.toString('latin1', 1 + length)}`);
    return true;
  }

  get labels(): string[] {
    return [...this.channels.values()];
  }
}

/** The routers of one room on three workers. */
class Room {
  readonly events: string[] = [];
  readonly counters: DataCounters[] = [];
  readonly routers = [1, 2, 3].map(() => {
    const counters = {
      dataMessages: { received: 0, sent: 0 },
      dropped: { data_rate: 0, data_denied: 0, data_malformed: 0, data_unheard: 0, data_backlog: 0 },
    };
    this.counters.push(counters);
    return new DataRouter(
      {
        channelClosed: (peerId, label, reason) => this.events.push(`${peerId} ${label} ${reason}`),
        messageChannel: () => undefined,
        heard: (peerId, { label }) => this.events.push(`${peerId} heard on ${label}`),
      },
      counters,
    );
  });
  isStuck = false;

  constructor() {
    for (const from of [0, 1, 2]) for (const to of [0, 1, 2]) if (from !== to) this.link(from, to);
  }

  link(from: number, to: number): void {
    const other = this.routers[to]!;
    this.routers[from]!.linkUp(to, {
      opened: (channel) => other.openedElsewhere(from, channel),
      closed: (label) => other.closedElsewhere(from, label),
      send: (message) => {
        if (!this.isStuck) other.fromElsewhere(structuredClone(message));
        return !this.isStuck;
      },
    });
  }

  join(router: number, peerId: string): Client {
    const client = new Client();
    this.routers[router]!.join(peerId, client, EVERYTHING);
    return client;
  }
}

let room: Room;
let ann: Client;
let bob: Client;
let eve: Client;
beforeEach(() => {
  room = new Room();
  ann = room.join(0, 'ann');
  bob = room.join(1, 'bob');
  eve = room.join(2, 'eve');
  room.routers[0]!.opened('ann', 1, CHAT, 0);
});

/** Sends a message from a client on the first worker, to these ids or to everybody. */
function say(text: string, to: string[] = [], stream = 1): void {
  const ids = to.map((id) => Buffer.concat([Buffer.from([id.length]), Buffer.from(id)]));
  room.routers[0]!.message(
    'ann',
    stream,
    true,
    Buffer.concat([Buffer.from([to.length]), ...ids, Buffer.from(text)]),
    0,
  );
}

describe('data channels of a room on several workers', () => {
  test('opens a channel once towards each client of all workers', () => {
    for (const client of [bob, eve]) expect(client.labels).toEqual(['chat']);
    expect(room.join(2, 'late').labels).toEqual(['chat']);
    room.routers[1]!.opened('bob', 2, CHAT, 0);
    expect(eve.labels).toEqual(['chat']);
  });

  test('delivers a message for everybody once to each client', () => {
    const near = room.join(0, 'near');
    say('hello');
    for (const client of [near, bob, eve]) expect(client.heard).toEqual(['101 ann: hello']);
    expect(ann.heard).toEqual([]);
  });

  test('delivers a message for some clients to those, wherever they are', () => {
    const near = room.join(0, 'near');
    say('psst', ['eve', 'near']);
    expect(near.heard).toHaveLength(1);
    expect(eve.heard).toHaveLength(1);
    expect(bob.heard).toEqual([]);
  });

  test('closes a channel everywhere with the last client that has opened it', () => {
    room.routers[2]!.opened('eve', 2, CHAT, 0);
    room.routers[0]!.closed('ann', 1);
    expect(bob.labels).toEqual(['chat']);
    room.routers[2]!.closed('eve', 2);
    expect(bob.labels).toEqual([]);
  });

  test('closes the channels of a worker that has ended, which learns of the others when it is linked', () => {
    room.routers[1]!.linkDown(0);
    expect(bob.labels).toEqual([]);
    room.link(0, 1);
    expect(bob.labels).toEqual(['chat']);
  });

  test('sends a client that may not receive nothing from another worker either', () => {
    room.routers[1]!.permit('bob', { send: true, receive: false });
    say('hello');
    expect(bob.heard).toEqual([]);
    expect(eve.heard).toHaveLength(1);
  });

  test('closes a reliable channel whose messages another worker cannot accept, and tells its sender', () => {
    room.isStuck = true;
    say('hello');
    expect(room.events).toEqual(['ann chat backlog']);
    say('again');
    expect(room.events).toHaveLength(1);
  });

  test('drops and counts unreliable messages that another worker cannot accept', () => {
    room.routers[0]!.opened('ann', 3, CURSOR, 0);
    room.isStuck = true;
    say('1,2', [], 3);
    expect(room.counters[0]!.dropped.data_backlog).toBe(1);
    room.isStuck = false;
    say('3,4', [], 3);
    expect(bob.heard).toEqual(['102 ann: 3,4']);
  });

  test("counts labels of other workers towards a room's limit", () => {
    for (let i = 0; i < 100; i++) room.routers[1]!.openedElsewhere(0, { ...CHAT, label: `label ${i}` });
    expect(bob.labels).toHaveLength(64);
  });

  describe('with limits of the whole room', () => {
    test("routers share what the backend hears equally among the room's workers", () => {
      room.routers[0]!.setDataEvents(['chat']);
      const frame = Buffer.from('\0x');
      for (let sender = 0; sender < 10; sender++) {
        const peerId = `sender${sender}`;
        room.join(0, peerId);
        room.routers[0]!.opened(peerId, 1, CHAT, 0);
        for (let i = 0; i < 200; i++) room.routers[0]!.message(peerId, 1, true, frame, 0);
      }
      expect(room.events).toHaveLength(Math.floor(2_000 / 3));
    });

    test("routers share what plain channels hand over equally among the room's workers", () => {
      let admitted = 0;
      for (let i = 0; i < 4_000; i++) if (room.routers[0]!.admitsPlain(0, 1)) admitted++;
      expect(admitted).toBe(Math.floor(4_000 / 3));
    });
  });
});
