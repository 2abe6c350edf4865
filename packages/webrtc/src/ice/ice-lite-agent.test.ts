import { beforeEach, describe, expect, test } from '@jest/globals';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import { type CheckOutcome, CONSENT_TIMEOUT_MS, type IceGeneration, IceLiteAgent } from './ice-lite-agent.js';

const MAPPED = { bytes: Uint8Array.of(192, 0, 2, 9), port: 5000 };

function generation(number: number): IceGeneration {
  return {
    generation: number,
    localUfrag: `L${number}`,
    localPwd: `local-password-${number}`,
    remoteUfrag: `R${number}`,
    remotePwd: `remote-password-${number}`,
  };
}

interface CheckOptions {
  nominate?: boolean;
  password?: string;
  username?: string;
  extra?: (writer: StunWriter) => unknown;
  /** Default 0. */
  nowMs?: number;
}

function check(of: IceGeneration, options: CheckOptions = {}): StunMessage {
  const writer = new StunWriter(Method.binding, MessageClass.request, Buffer.alloc(12, 7));
  writer.text(Attribute.username, options.username ?? `${of.localUfrag}:${of.remoteUfrag}`);
  options.extra?.(writer);
  if (options.nominate !== false) writer.bytes(Attribute.useCandidate, Buffer.alloc(0));
  const bytes = writer
    .integrity(options.password ?? of.localPwd)
    .fingerprint()
    .finish();
  return StunMessage.parse(bytes) as StunMessage;
}

let ufrags: Set<string>;
let agent: IceLiteAgent<string>;
const send = (of: IceGeneration, path: string, options: CheckOptions = {}): CheckOutcome =>
  agent.handleCheck(check(of, options), { path, mapped: MAPPED }, options.nowMs ?? 0);

beforeEach(() => {
  ufrags = new Set();
  agent = new IceLiteAgent({
    registry: { added: (ufrag) => ufrags.add(ufrag), removed: (ufrag) => ufrags.delete(ufrag) },
  });
  agent.accept(generation(1), 0);
});

describe('answering checks', () => {
  test('answers an authentic check with its address, authenticated by our password', () => {
    const outcome = send(generation(1), 'a', { nominate: false });
    const reply = StunMessage.parse(outcome.reply as Buffer);
    expect(outcome).toMatchObject({ accepted: true });
    expect(outcome.nominated).toBeUndefined();
    expect(reply?.messageClass).toBe(MessageClass.success);
    expect(reply?.xorAddress(Attribute.xorMappedAddress)).toEqual(MAPPED);
    expect(reply?.verifyIntegrity('local-password-1') && reply.fingerprintHolds).toBe(true);
    expect(agent.state).toBe('new');
  });

  test.each([
    ['a wrong password', { password: 'guess' }],
    ['an unknown user', { username: 'nobody:R1' }],
    ['no colon in the user name', { username: 'L1' }],
  ])('does not answer a stranger with %s', (_what, options) => {
    expect(send(generation(1), 'a', options)).toEqual({ accepted: false });
    expect(agent.bindingRequestsReceived).toBe(0);
  });

  test('does not answer a check without MESSAGE-INTEGRITY', () => {
    const bytes = new StunWriter(Method.binding, MessageClass.request, Buffer.alloc(12))
      .text(Attribute.username, 'L1:R1')
      .finish();
    expect(agent.handleCheck(StunMessage.parse(bytes) as StunMessage, { path: 'a', mapped: MAPPED }, 0)).toEqual({
      accepted: false,
    });
  });

  test('does not answer a check with a wrong fingerprint', () => {
    const message = check(generation(1));
    const last = message.buffer.length - 1;
    message.buffer[last] = (message.buffer[last] ?? 0) ^ 1;
    expect(agent.handleCheck(message, { path: 'a', mapped: MAPPED }, 0)).toEqual({ accepted: false });
  });

  test('answers a client in the controlled role with a role conflict', () => {
    const outcome = send(generation(1), 'a', {
      extra: (writer) => writer.bytes(Attribute.iceControlled, Buffer.alloc(8, 1)),
    });
    expect(StunMessage.parse(outcome.reply as Buffer)?.errorCode).toBe(487);
    expect(outcome.accepted).toBe(false);
    expect(agent.path).toBeUndefined();
  });

  test('names an unknown attribute that requires comprehension', () => {
    const outcome = send(generation(1), 'a', { extra: (writer) => writer.uint32(0x7777, 1) });
    const reply = StunMessage.parse(outcome.reply as Buffer);
    expect(reply?.errorCode).toBe(420);
    expect(reply?.bytes(Attribute.unknownAttributes)).toEqual(Buffer.from('7777', 'hex'));
  });
});

describe('nomination', () => {
  test('moves the send path on USE-CANDIDATE, and reports only the first nomination of a generation', () => {
    expect(send(generation(1), 'a').nominated).toEqual({ generation: 1, first: true });
    expect(send(generation(1), 'a').nominated).toEqual({ generation: 1, first: false });
    expect(send(generation(1), 'b').nominated).toEqual({ generation: 1, first: false });
    expect(agent.path).toBe('b');
  });

  test('keeps the old pair until the new credentials are nominated', () => {
    send(generation(1), 'old');
    agent.accept(generation(2), 10);
    expect([...ufrags].toSorted()).toEqual(['L1', 'L2']);
    send(generation(2), 'new', { nowMs: 20, nominate: false });
    expect(agent.path).toBe('old');
    expect(send(generation(1), 'old', { nowMs: 30 }).accepted).toBe(true);

    expect(send(generation(2), 'new', { nowMs: 40 }).nominated).toEqual({ generation: 2, first: true });
    expect(agent.path).toBe('new');
    expect(agent.generation).toBe(2);
    expect([...ufrags]).toEqual(['L2']);
    expect(send(generation(1), 'old', { nowMs: 50 })).toEqual({ accepted: false });
  });

  test('completes the cycle of a client that restarts but keeps quoting our old ufrag', () => {
    send(generation(1), 'old');
    agent.accept(generation(2), 10);
    const mixed = { username: 'L1:R2' };
    expect(send(generation(1), 'new', { nowMs: 20, ...mixed, nominate: false }).nominated).toBeUndefined();
    const outcome = send(generation(1), 'new', { nowMs: 30, ...mixed });
    expect(outcome.nominated).toEqual({ generation: 2, first: true });
    expect(StunMessage.parse(outcome.reply as Buffer)?.verifyIntegrity('local-password-1')).toBe(true);
    expect(agent.path).toBe('new');
    expect(agent.generation).toBe(2);
    expect([...ufrags].toSorted()).toEqual(['L1', 'L2']);

    expect(send(generation(1), 'new', { nowMs: 40, ...mixed }).nominated).toEqual({ generation: 2, first: false });
    expect(send(generation(2), 'new', { nowMs: 50 }).nominated).toEqual({ generation: 2, first: false });

    agent.accept(generation(3), 60);
    expect(send(generation(1), 'newer', { nowMs: 70, username: 'L1:R3' }).nominated).toEqual({
      generation: 3,
      first: true,
    });
    expect([...ufrags].toSorted()).toEqual(['L1', 'L3']);
    agent.accept(generation(4), 80);
    expect(send(generation(4), 'newest', { nowMs: 90 }).nominated).toEqual({ generation: 4, first: true });
    expect([...ufrags]).toEqual(['L4']);
    expect(send(generation(1), 'newest', { nowMs: 100, username: 'L1:R4' })).toEqual({ accepted: false });
  });

  test('keeps a client that quotes our old ufrag through a cycle without a restart', () => {
    send(generation(1), 'old');
    agent.accept(generation(2), 10);
    const mixed = { username: 'L1:R2' };
    send(generation(1), 'new', { nowMs: 20, ...mixed });
    expect(agent.accept({ ...generation(2), generation: 3 }, 30)).toBe(true);
    expect(send(generation(1), 'new', { nowMs: 40, ...mixed }).nominated).toEqual({ generation: 3, first: false });
    expect([...ufrags].toSorted()).toEqual(['L1', 'L2']);
  });

  test('refuses a new client ufrag without our password', () => {
    send(generation(1), 'old');
    agent.accept(generation(2), 10);
    expect(send(generation(1), 'new', { nowMs: 20, username: 'L1:R2', password: 'guess' })).toEqual({
      accepted: false,
    });
    expect(agent.generation).toBe(1);
    expect([...ufrags].toSorted()).toEqual(['L1', 'L2']);
  });

  test('discards cycles that are never nominated and keeps the nominated one', () => {
    send(generation(1), 'a');
    for (let number = 2; number <= 20; number++) agent.accept(generation(number), number);
    expect([...ufrags].toSorted()).toEqual(['L1', 'L19', 'L20']);
    expect(send(generation(1), 'a').accepted).toBe(true);
    expect(send(generation(20), 'z').nominated).toEqual({ generation: 20, first: true });
    expect([...ufrags]).toEqual(['L20']);
  });

  test('needs no nomination for unchanged credentials', () => {
    send(generation(1), 'a');
    expect(agent.accept({ ...generation(1), generation: 2 }, 5)).toBe(true);
    expect(agent.generation).toBe(2);
    expect(agent.path).toBe('a');
    expect(send(generation(1), 'a').nominated).toEqual({ generation: 2, first: false });
  });

  test('never nominates a restart that the client has taken back', () => {
    send(generation(1), 'a');
    agent.accept(generation(2), 5);
    expect(agent.accept({ ...generation(1), generation: 3 }, 6)).toBe(true);
    const late = send(generation(2), 'b', { nowMs: 7 });
    expect(late.accepted).toBe(true);
    expect(late.nominated).toBeUndefined();
    expect(agent.generation).toBe(3);
    expect(agent.path).toBe('a');
  });

  test('stops sending to a forgotten path and does not report its return', () => {
    send(generation(1), 'a');
    agent.forget('a');
    expect(agent.path).toBeUndefined();
    expect(send(generation(1), 'b').nominated).toEqual({ generation: 1, first: false });
    expect(agent.path).toBe('b');
  });

  test('selects the generation by our user fragment, whatever the client quotes as its own', () => {
    agent.accept(generation(2), 0);
    expect(send(generation(2), 'a', { username: 'L2:R1' }).nominated?.generation).toBe(2);
  });
});

describe('consent', () => {
  test('reports a client silent once after 30 s without a check, and active with the next one', () => {
    send(generation(1), 'a', { nowMs: 1_000 });
    expect(agent.sweep(1_000 + CONSENT_TIMEOUT_MS - 1)).toBe(false);
    expect(agent.sweep(1_000 + CONSENT_TIMEOUT_MS)).toBe(true);
    expect(agent.sweep(2_000 + CONSENT_TIMEOUT_MS)).toBe(false);
    expect(agent.state).toBe('silent');
    send(generation(1), 'a', { nowMs: 90_000, nominate: false });
    expect(agent.state).toBe('connected');
    expect(agent.sweep(90_000 + CONSENT_TIMEOUT_MS)).toBe(true);
  });

  test('reports a client that never checks silent 30 s after the first answer', () => {
    expect(agent.sweep(CONSENT_TIMEOUT_MS - 1)).toBe(false);
    expect(agent.sweep(CONSENT_TIMEOUT_MS)).toBe(true);
  });

  test("does not count a stranger's checks towards a client's consent", () => {
    send(generation(1), 'a');
    send(generation(1), 'a', { nowMs: 20_000, password: 'guess' });
    expect(agent.sweep(CONSENT_TIMEOUT_MS)).toBe(true);
  });
});

test('removes all user fragments on close', () => {
  agent.accept(generation(2), 0);
  agent.close();
  expect(ufrags.size).toBe(0);
  expect(send(generation(1), 'a')).toEqual({ accepted: false });
});
