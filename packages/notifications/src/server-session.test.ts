import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { decodeServerMessage, encodeServerMessage, type ServerMessage } from '@bloom/protocol';
import { ServerSession, type SessionAction } from './server-session.js';

const TOKEN = 'the-token';
const AUTH = encodeServerMessage({ type: 'authRequest', token: TOKEN });
const SUBSCRIBE = encodeServerMessage({ type: 'subscribeRequest', eventType: 'serverNotification' });

/** Returns the actions with their frames decoded. */
function readable(actions: readonly SessionAction[]): unknown[] {
  return actions.map((action) => (action.type === 'send' ? decodeServerMessage(action.bytes) : action));
}

function fresh(): ServerSession {
  return new ServerSession(TOKEN, 0);
}

function authenticated(): ServerSession {
  const session = fresh();
  session.binary(AUTH, 0);
  return session;
}

const notAllowed = [{ type: 'close', code: 1003, reason: 'operation not allowed' }];
const invalidRequest = [{ type: 'close', code: 1000, reason: 'invalid auth request' }];

describe('before authentication', () => {
  test('answers the right token with authenticated, bytes 32 00', () => {
    expect(fresh().binary(AUTH, 0)).toEqual([{ type: 'send', bytes: Uint8Array.from([0x32, 0x00]) }]);
  });

  test.each(['wrong', '', `${TOKEN} `])('refuses the token "%s"', (token) => {
    const actions = fresh().binary(encodeServerMessage({ type: 'authRequest', token }), 0);
    expect(actions).toEqual([{ type: 'close', code: 1000, reason: 'invalid token' }]);
  });

  test.each<[string, Uint8Array]>([
    ['a subscription', SUBSCRIBE],
    ['another message', encodeServerMessage({ type: 'roomCreated', roomId: 'r' })],
    ['an empty message', new Uint8Array(0)],
    ['garbage', Uint8Array.from([255, 255, 255])],
  ])('rejects %s as an auth request', (_what, bytes) => {
    expect(fresh().binary(bytes, 0)).toEqual(invalidRequest);
  });

  test('rejects a text frame before authentication', () => {
    expect(fresh().text(0)).toEqual(notAllowed);
  });
});

describe('after authentication', () => {
  test.each(['serverNotification', 'metrics'] as const)('confirms the subscription to %s first', (eventType) => {
    const actions = authenticated().binary(encodeServerMessage({ type: 'subscribeRequest', eventType }), 0);
    expect(readable(actions)).toEqual([
      { type: 'subscribeResponse', eventType },
      { type: 'subscribe', eventType },
    ]);
  });

  test('answers a repeated subscription again', () => {
    const session = authenticated();
    expect(session.binary(SUBSCRIBE, 0)).toEqual(session.binary(SUBSCRIBE, 0));
  });

  const refused: [string, ServerMessage][] = [
    ['a second auth request', { type: 'authRequest', token: TOKEN }],
    ['event type 0', { type: 'subscribeRequest', eventType: null }],
    ['a response', { type: 'subscribeResponse', eventType: 'metrics' }],
    ['a notification', { type: 'roomCreated', roomId: 'r' }],
  ];

  test.each(refused)('rejects %s after authentication', (_what, message) => {
    expect(authenticated().binary(encodeServerMessage(message), 0)).toEqual(notAllowed);
  });

  test('rejects an unknown event type, garbage and text', () => {
    expect(authenticated().binary(Uint8Array.from([0x42, 0x02, 0x08, 0x63]), 0)).toEqual(notAllowed);
    expect(authenticated().binary(Uint8Array.from([1, 2, 3]), 0)).toEqual(notAllowed);
    expect(authenticated().text(0)).toEqual(notAllowed);
  });

  test('answers nothing after closing', () => {
    const session = authenticated();
    session.text(0);
    expect(session.binary(SUBSCRIBE, 0)).toEqual([]);
    expect(session.text(0)).toEqual([]);
    expect(session.tick(1e9)).toEqual([]);
  });
});

describe('timeouts', () => {
  test('sends a ping every 30 s after authentication and none before', () => {
    const waiting = fresh();
    expect(waiting.tick(30_000)).toEqual([]);

    const session = fresh();
    session.binary(AUTH, 10_000);
    expect(session.tick(39_999)).toEqual([]);
    expect(session.tick(40_000)).toEqual([{ type: 'ping' }]);
    session.pong(40_001);
    expect(session.tick(41_000)).toEqual([]);
    expect(session.tick(70_000)).toEqual([{ type: 'ping' }]);
  });

  test('ends the connection after a minute of silence, authenticated or not; a pong counts as activity', () => {
    expect(fresh().tick(60_000)).toEqual([{ type: 'terminate' }]);

    const session = authenticated();
    session.pong(20_000);
    expect(session.tick(79_999)).toEqual([{ type: 'ping' }]);
    expect(session.tick(80_000)).toEqual([{ type: 'terminate' }]);
    expect(session.tick(90_000)).toEqual([]);
  });
});

test('answers or closes, and never throws, whatever bytes it receives', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 }), fc.boolean(), (frames, auth) => {
      const session = auth ? authenticated() : fresh();
      const closes = frames.flatMap((frame) => session.binary(frame, 0)).filter((action) => action.type === 'close');
      expect(closes.length).toBeLessThanOrEqual(1);
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});
