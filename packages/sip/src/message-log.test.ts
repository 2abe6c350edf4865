import { expect, test } from '@jest/globals';
import { parseMessage } from './message.js';
import { maskCredentials, MessageLog } from './message-log.js';

const peer = { transport: 'UDP', host: '192.0.2.10', port: 5060 } as const;
const register = (line: string) =>
  parseMessage(Buffer.from(`REGISTER sip:pbx.test SIP/2.0\r\nVia: SIP/2.0/UDP h\r\n${line}\r\n\r\n`));

test('keeps the last 200 messages', () => {
  let now = 0;
  const log = new MessageLog(() => ++now);
  for (let count = 0; count < 250; count += 1) log.add('in', register(`Call-ID: ${count}`), peer);
  const entries = log.entries();
  expect(entries).toHaveLength(200);
  expect(entries[0]).toMatchObject({ at: 51, direction: 'in', peer: 'UDP 192.0.2.10:5060' });
  expect(entries[0]?.text).toContain('Call-ID: 50');
});

test.each([
  [
    'Authorization: Digest username="room", realm="r", nonce="secret1", uri="sip:r", response="secret2", cnonce="secret3"',
  ],
  ['Proxy-Authorization: Digest response="secret2", username="room"'],
  ['AUTHORIZATION: Basic c2VjcmV0'],
  ['Authorization: Bearer secret.secret'],
  ['To: <sip:room:secret@pbx.test>'],
  ['Authorization: Digest username="room",\r\n response="secret2"'],
  [`To: <sip:room:secret${'x'.repeat(300)}@pbx.test>`],
  [`To: <sip:${'room'.repeat(100)}:secret@pbx.test>`],
  ['To: <sip:pbx.test:5060;via=sip:room:secret@pbx.test>'],
])('masks every secret in %j', (line) => {
  const log = new MessageLog(() => 0);
  log.add('out', register(line), peer);
  expect(log.entries()[0]?.text).not.toMatch(/secret|c2VjcmV0/);
});

test('shows no part of a secret where a long message is cut', () => {
  const log = new MessageLog(() => 0);
  for (let filler = 4_000; filler < 6_000; filler += 7) {
    const long = `Authorization: Digest response="${'x'.repeat(300)}"\r\nSubject: ${'y'.repeat(filler)}`;
    log.add('in', register(`${long}\r\nTo: <sip:room:secret@pbx.test>\r\nX: ${'z'.repeat(2_000)}`), peer);
    expect(log.entries().at(-1)?.text).not.toMatch(/room:[^*]/);
    expect(log.entries().at(-1)?.text.length).toBeLessThanOrEqual(4_096);
  }
});

test('keeps who asked and where, and leaves the rest unchanged', () => {
  expect(
    maskCredentials(
      'Authorization: Digest username="room", realm="r", nonce="n", uri="sip:r", response="x", nc=00000001',
    ),
  ).toBe('Authorization: Digest username="room", realm="r", uri="sip:r", nc=00000001, response="***"');
  expect(maskCredentials('To: <sip:room@pbx.test:5060>\r\na=crypto:1 AES inline:key')).toBe(
    'To: <sip:room@pbx.test:5060>\r\na=crypto:***',
  );
});
