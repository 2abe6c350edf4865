import { describe, expect, test } from '@jest/globals';
import type { SipRequest } from '../message.js';
import { answered, contact, dial } from '../testing/dialled-call.js';
import { challenge, sdpAnswer } from '../testing/test-agent.js';

const minutes = 60_000;

describe('a redirected call', () => {
  const elsewhere: readonly [string, string] = ['Contact', '<sip:mobile@other.test:5070>;q=0.7'];

  test.each([301, 302])('goes to the Contact of a %i, with the tag and Call-ID of the first INVITE', (status) => {
    const { agent, types } = dial();
    const first = agent.request('INVITE');
    agent.answer(first, status, { headers: [elsewhere], tag: 'redirect' });
    const [ack, second] = agent.take() as [SipRequest, SipRequest];
    expect(ack.method).toBe('ACK');
    expect(second.uri).toBe('sip:mobile@other.test:5070');
    expect(agent.lookups.at(-1)).toBe('other.test');
    expect(second.headers.get('Call-ID')).toBe(first.headers.get('Call-ID'));
    expect(second.headers.get('From')).toBe(first.headers.get('From'));
    expect(second.headers.get('To')).toBe(first.headers.get('To'));
    expect(second.headers.get('CSeq')).toBe('2 INVITE');
    agent.answer(second, 200, { headers: [contact], body: sdpAnswer() });
    agent.request('ACK');
    expect(types()).toEqual(['answered', 'media']);
  });

  test('uses the first Contact that can be called', () => {
    const { agent } = dial();
    const headers = [['Contact', '<tel:+491>, <sips:a@other.test>, <sip:b@other.test>'] as const];
    agent.answer(agent.request('INVITE'), 302, { headers });
    expect((agent.take()[1] as SipRequest).uri).toBe('sip:b@other.test');
  });

  test('is not redirected twice', () => {
    const { agent, events } = dial();
    agent.answer(agent.request('INVITE'), 302, { headers: [elsewhere] });
    agent.answer(agent.take()[1] as SipRequest, 302, { headers: [['Contact', '<sip:third@other.test>']] });
    expect(events).toMatchObject([{ type: 'ended', reason: 'redirected', status: 302 }]);
  });

  test.each([
    ['to the same address', '<sip:+49301234@pbx.test>'],
    ['to a scheme that cannot be called', '<tel:+491>'],
    ['to garbage', '<<sip:'],
  ])('ends when redirected %s', (_what, target) => {
    const { agent, events } = dial();
    agent.answer(agent.request('INVITE'), 302, { headers: [['Contact', target]] });
    expect(events).toMatchObject([{ type: 'ended', reason: 'redirected' }]);
  });

  test('gives the password only to the provider', () => {
    const { agent, events } = dial();
    const proxy: [string, string] = ['Proxy-Authenticate', challenge('n1')[1]];
    agent.answer(agent.request('INVITE'), 302, { headers: [elsewhere] });
    agent.answer(agent.take()[1] as SipRequest, 407, { headers: [proxy] });
    expect(events).toMatchObject([{ type: 'ended', reason: 'unauthorized', status: 407 }]);
    expect(agent.titles()).toEqual(['ACK']);
  });

  test('still ends when it is not answered in time', () => {
    const { agent, events } = dial();
    const invite = agent.request('INVITE');
    agent.answer(invite, 100);
    agent.clock.advance(50_000);
    agent.answer(invite, 302, { headers: [elsewhere] });
    agent.clock.advance(10_000);
    expect(events).toMatchObject([{ type: 'ended', reason: 'no_answer' }]);
  });
});

describe('asking whether the other side still has the call', () => {
  test('sends OPTIONS within the dialog', () => {
    const { agent, call } = answered();
    call.ask(() => undefined);
    const options = agent.request('OPTIONS');
    expect(options.uri).toBe('sip:phone@192.0.2.20:5062');
    expect(options.headers.get('Call-ID')).toBe(call.callId);
  });

  test.each([200, 405, 501])('accepts a %i as an answer', (status) => {
    const { agent, call } = answered();
    let answers = 0;
    call.ask(() => (answers += 1));
    agent.answer(agent.request('OPTIONS'), status);
    expect(answers).toBe(1);
    expect(call.state).toBe('answered');
  });

  test.each([481, 408])('ends the call without a BYE on a %i', (status) => {
    const { agent, call, events } = answered();
    call.ask(() => undefined);
    agent.answer(agent.request('OPTIONS'), status);
    expect(events.at(-1)).toMatchObject({ type: 'ended', reason: 'remote_hung_up', status });
    expect(agent.titles()).toEqual([]);
  });

  test('changes nothing when there is no answer', () => {
    const { agent, call } = answered();
    let answers = 0;
    call.ask(() => (answers += 1));
    agent.clock.advance(minutes);
    expect(answers).toBe(0);
    expect(call.state).toBe('answered');
  });

  test('stops when the call ends', () => {
    const { agent, call } = answered();
    call.ask(() => undefined);
    agent.request('OPTIONS');
    call.hangUp();
    agent.answer(agent.request('BYE'), 200);
    agent.clock.advance(minutes);
    expect(agent.titles()).toEqual([]);
    expect(agent.clock.pending).toBe(0);
  });
});
