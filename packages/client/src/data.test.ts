import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { Conversations, type DataMessage, decodeData, encodeData } from './data.js';
import { RoomClientError } from './errors.js';

/** Members of a browser's RTCDataChannel. */
class Channel extends EventTarget {
  readyState = 'connecting';
  bufferedAmount = 0;
  bufferedAmountLowThreshold = 0;
  binaryType = 'blob';
  readonly sent: unknown[] = [];

  constructor(
    readonly label: string,
    readonly options: unknown,
  ) {
    super();
  }

  send(frame: string | Uint8Array): void {
    this.sent.push(frame);
    this.bufferedAmount += frame.length;
  }

  become(state: 'open' | 'closed'): void {
    this.readyState = state;
    this.dispatchEvent(new Event(state === 'open' ? 'open' : 'close'));
  }

  drain(): void {
    this.bufferedAmount = 0;
    this.dispatchEvent(new Event('bufferedamountlow'));
  }

  receive(data: unknown): void {
    this.dispatchEvent(Object.assign(new Event('message'), { data }));
  }
}

let channels: Channel[];
let received: DataMessage[];
let online: boolean;
let conversations: Conversations;

beforeEach(() => {
  [channels, received, online] = [[], [], true];
  conversations = new Conversations({
    open: (label, options) => {
      if (!online) return undefined;
      const channel = new Channel(label, options);
      channels.push(channel);
      conversations.listen(channel as never);
      return channel as never;
    },
    received: (message) => received.push(message),
  });
});

afterEach(() => void jest.useRealTimers());

test("opens a label's channel for the first message and sends it once the channel is open", async () => {
  const sent = conversations.send('chat', 'hello');
  expect(channels.map(({ label, options, sent: frames }) => ({ label, options, frames }))).toEqual([
    { label: 'chat', options: { ordered: true }, frames: [] },
  ]);
  channels[0]?.become('open');
  await sent;
  await conversations.send('chat', 'Bob', { to: ['b0b'] });
  expect(channels[0]?.sent).toEqual(['\0hello', '\x01\x03b0bBob']);
  void conversations.open('pointers', false);
  expect(channels[1]?.options).toEqual({ ordered: false, maxRetransmits: 0 });
});

test('holds messages during a lost connection and then continues in order', async () => {
  const opened = conversations.open('chat');
  channels[0]?.become('open');
  await opened;
  await conversations.send('chat', '1');
  channels[0]?.become('closed');
  const waiting = [conversations.send('chat', '2'), conversations.send('chat', '3')];
  conversations.connected();
  channels[1]?.become('open');
  await Promise.all(waiting);
  expect(channels.map(({ sent }) => sent)).toEqual([['\x001'], ['\x002', '\x003']]);
});

test('opens conversations once a connection exists', async () => {
  online = false;
  const opened = conversations.open('chat');
  expect(channels).toEqual([]);
  online = true;
  conversations.connected();
  expect(channels.map(({ label }) => label)).toEqual(['chat']);
  channels[0]?.become('open');
  await opened;
});

test('gives no more to a browser with too much unsent data', async () => {
  void conversations.open('files');
  const [channel] = channels;
  channel?.become('open');
  const parts = Array.from({ length: 6 }, () => conversations.send('files', new Uint8Array(60_000)));
  await Promise.all(parts.slice(0, 5));
  expect(channel?.sent).toHaveLength(5);
  channel?.drain();
  await parts[5];
  expect(channel?.sent).toHaveLength(6);
});

test('rejects waiting messages when the server closes a conversation, which the next message reopens', async () => {
  const lost = conversations.send('chat', 'hello');
  await Promise.resolve();
  conversations.closed('chat', 'backlog');
  await expect(lost).rejects.toMatchObject({ code: 'DATA_REFUSED', message: expect.stringContaining('backlog') });
  void conversations.open('chat');
  expect(channels).toHaveLength(2);
});

test('rejects waiting messages when a channel closes without a report, and reopens it with the next message', async () => {
  jest.useFakeTimers();
  const opened = conversations.send('chat', 'hello');
  channels[0]?.become('open');
  await opened;
  channels[0]?.become('closed');
  const lost = expect(conversations.send('chat', 'are you there?')).rejects.toMatchObject({ code: 'DATA_REFUSED' });
  await jest.advanceTimersByTimeAsync(2_000);
  await lost;
  const sent = conversations.send('chat', 'again');
  expect(channels).toHaveLength(2);
  channels[1]?.become('open');
  await sent;
  expect(channels[1]?.sent).toEqual(['\0again']);
});

test('holds messages during a lost connection even if its channels report their end', async () => {
  jest.useFakeTimers();
  const opened = conversations.open('chat');
  channels[0]?.become('open');
  await opened;
  // Some browsers report it before the socket does, others when this side closes the connection.
  channels[0]?.become('closed');
  const sent = conversations.send('chat', 'hello');
  online = false;
  conversations.disconnected();
  channels[0]?.become('closed');
  await jest.advanceTimersByTimeAsync(60_000);
  online = true;
  conversations.connected();
  channels[1]?.become('open');
  await sent;
  expect(channels[1]?.sent).toEqual(['\0hello']);
});

test('rejects waiting messages when the call ends', async () => {
  const lost = conversations.send('chat', 'hello');
  await Promise.resolve();
  conversations.clear(new RoomClientError('LEFT', 'the client left the room'));
  await expect(lost).rejects.toMatchObject({ code: 'LEFT' });
});

test.each([
  ['a message that is too large', { label: 'chat', data: 'ü'.repeat(40_000), to: [] }, '80000 bytes'],
  ['a receiver that is no peer', { label: 'chat', data: 'x', to: ['Bjørn'] }, 'Bjørn'],
  ['too many receivers', { label: 'chat', data: 'x', to: Array<string>(128).fill('a') }, '128 receivers'],
  ['no label', { label: '', data: 'x', to: [] }, '"" is not a label'],
  ['a label that is too long', { label: 'ü'.repeat(33), data: 'x', to: [] }, 'is not a label'],
  ['the label of the backend', { label: 'roomMessage', data: 'x', to: [] }, 'is not a label'],
])('refuses %s with an explanation', async (_what, { label, data, to }, words) => {
  await expect(conversations.send(label, data, { to })).rejects.toMatchObject({
    code: 'DATA_REFUSED',
    message: expect.stringContaining(words),
  });
  expect(channels).toEqual([]);
});

test('receives messages with their sender, on channels opened by either side', () => {
  void conversations.open('chat');
  channels[0]?.receive('\x03annhello');
  const opened = new Channel('files', {});
  conversations.listen(opened as never);
  opened.receive(Uint8Array.of(1, 0x62, 7, 8).buffer);
  opened.receive('\x05abc');
  expect(received).toEqual([
    { label: 'chat', from: 'ann', data: 'hello' },
    { label: 'files', from: 'b', data: Uint8Array.of(7, 8) },
  ]);
});

const id = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 127,
});

test('writes the same header for text and bytes, and reads back its receivers', () => {
  fc.assert(
    fc.property(fc.array(id, { maxLength: 127 }), fc.string({ unit: codePoint(fc) }), (to, text) => {
      const bytes = encodeData(new TextEncoder().encode(text), to);
      expect(bytes).toEqual(new TextEncoder().encode(encodeData(text, to) as string));
      const frame = Buffer.from(bytes as Uint8Array);
      let at = 1;
      const ids = Array.from({ length: frame[0] ?? 0 }, () => {
        const end = at + 1 + (frame[at] ?? 0);
        const name = frame.toString('latin1', at + 1, end);
        at = end;
        return name;
      });
      expect(ids).toEqual(to);
      expect(frame.subarray(at)).toEqual(Buffer.from(text));
    }),
    { numRuns: fuzzRuns(200) },
  );
});

test('reads any frame as a message or undefined', () => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: codePoint(fc) })), (frame) => {
      const length = typeof frame === 'string' ? frame.charCodeAt(0) : (frame[0] ?? Number.NaN);
      const message = decodeData(typeof frame === 'string' ? frame : Uint8Array.from(frame).buffer);
      if (!(1 + length <= frame.length)) return expect(message).toBeUndefined();
      expect(message?.from).toHaveLength(length);
      return expect(message?.data).toHaveLength(frame.length - 1 - length);
    }),
    { numRuns: fuzzRuns(1_000) },
  );
});
