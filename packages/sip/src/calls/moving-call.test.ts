// An answered call that a phone at another address continues.
import { describe, expect, test } from '@jest/globals';
import { answered, contact, routes } from '../testing/dialled-call.js';
import { account, challenge, sdpAnswer, TestAgent } from '../testing/test-agent.js';
import type { SipRequest } from '../message.js';
import type { CallEvent, MovingCall } from './call-options.js';

/** Continues the call at 192.0.2.2. */
function continued(former: MovingCall) {
  const agent = new TestAgent('UDP', account, '192.0.2.2');
  const events: CallEvent[] = [];
  const call = agent.agent.dial({
    number: former.number,
    former,
    media: { address: '192.0.2.2', port: 50_000 },
    codecs: ['PCMU', 'PCMA'],
    ringTimeoutMs: 60_000,
    onEvent: (event) => events.push(event),
  });

  return { agent, call, events, types: () => events.map((event) => event.type) };
}

/** Returns the call as plain data, which has travelled between nodes. */
function travelled(): { from: ReturnType<typeof answered>; former: MovingCall } {
  const from = answered();
  from.call.freeze(true);

  return { from, former: JSON.parse(JSON.stringify(from.call.moving())) as MovingCall };
}

/** Returns a request from the other side. */
const theirs = ({ dialog }: MovingCall, method: string, sequence = 1): string => `${method} sip:room@192.0.2.1 SIP/2.0
Via: SIP/2.0/TCP 192.0.2.20:5062;branch=z9hG4bK-${method}-${sequence}
From: ${dialog.to}
To: ${dialog.from}
Call-ID: ${dialog.callId}
CSeq: ${sequence} ${method}
Contact: <sip:phone@192.0.2.20:5062>

`;

describe('a call that moves to another phone', () => {
  test('is brought there by a re-INVITE in its dialog and its session, with the new addresses', () => {
    const { from, former } = travelled();
    const { agent, call, events, types } = continued(former);
    const invite = agent.request('INVITE');
    expect(invite.uri).toBe('sip:phone@192.0.2.20:5062');
    expect(invite.headers.all('Route')).toEqual(['<sip:core.test;lr>', '<sip:edge.test;lr>']);
    expect(invite.headers.get('Call-ID')).toBe(from.invite.headers.get('Call-ID'));
    expect(invite.headers.get('From')).toBe(from.invite.headers.get('From'));
    expect(invite.headers.get('To')).toContain(';tag=peer');
    expect(invite.headers.get('Contact')).toBe('<sip:room@192.0.2.2:5060>');
    // Higher than anything that the former phone may have sent.
    expect(Number.parseInt(invite.headers.get('CSeq')!, 10)).toBeGreaterThan(2);
    const [, id] = /^o=- (\d+) 1 IN IP4 192\.0\.2\.1\r$/m.exec(from.invite.body.toString())!;
    const offer = invite.body.toString().split('\r\n');
    expect(offer).toContain(`o=- ${id} 2 IN IP4 192.0.2.1`);
    expect(offer).toContain('c=IN IP4 192.0.2.2');
    expect(offer).toContain('m=audio 50000 RTP/AVP 0 8 101');
    expect([call.state, types()]).toEqual(['answered', []]);

    agent.answer(invite, 200, { headers: [contact, ...routes], body: sdpAnswer() });
    expect(agent.request('ACK').headers.get('CSeq')).toBe(invite.headers.get('CSeq')!.replace('INVITE', 'ACK'));
    expect(types()).toEqual(['moved', 'media']);
    expect(events.at(-1)).toMatchObject({ audio: { remote: { address: '192.0.2.20', port: 4000 } }, early: false });
    call.hangUp();
    const bye = agent.request('BYE');
    expect(bye.headers.all('Route')).toEqual(['<sip:core.test;lr>', '<sip:edge.test;lr>']);
    agent.answer(bye, 200);
    expect(agent.agent.activity.calls).toBe(0);
  });

  test('is ended by nobody where it was, and changes of the other side wait there', () => {
    const { from, former } = travelled();
    from.agent.receiveText(theirs(former, 'INVITE'));
    expect(from.agent.titles()).toEqual(['491 INVITE']);
    from.call.leave();
    expect(from.events.at(-1)).toEqual({ type: 'ended', reason: 'moved', status: undefined, text: '' });
    for (const method of ['INVITE', 'UPDATE'])
      from.agent.receiveText(theirs(former, method, method === 'INVITE' ? 2 : 3));
    expect(from.agent.titles()).toEqual(['491 INVITE', '491 UPDATE']);
    from.agent.receiveText(theirs(former, 'BYE', 4));
    expect(from.agent.titles()).toEqual(['200 BYE']);
  });

  test('is not ended by an acceptance that arrives where it was after it has moved on', () => {
    const { agent, call } = continued(travelled().former);
    const invite = agent.request('INVITE');
    call.freeze(true);
    call.leave();
    agent.take();
    agent.answer(invite, 200, { headers: [contact, ...routes], body: sdpAnswer() });
    expect(agent.titles()).toEqual(['ACK']);
  });

  test('goes on where it was if its room stays', () => {
    const { from, former } = travelled();
    from.call.freeze(false);
    from.agent.receiveText(theirs(former, 'UPDATE'));
    expect(from.agent.titles()).toEqual(['200 UPDATE']);
    from.call.hangUp();
    expect(from.agent.titles()).toEqual(['BYE']);
  });

  test('is asked nothing while its room is about to leave', () => {
    const { from } = travelled();
    from.call.ask(() => undefined);
    expect(from.agent.titles()).toEqual([]);
  });

  test('is hung up where it was before it was answered', () => {
    const { agent, call } = { ...answered() };
    call.hangUp();
    agent.take();
    expect(call.moving()).toBeUndefined();
  });

  test('answers the challenge of a provider that checks each change', () => {
    const { agent, types } = continued(travelled().former);
    const [name, value] = challenge('n1');
    agent.answer(agent.request('INVITE'), 401, { headers: [[name, value]] });
    const [, again] = agent.take() as [SipRequest, SipRequest];
    expect(again.headers.get('Authorization')).toContain('nonce="n1"');
    agent.answer(again, 200, { headers: [contact], body: sdpAnswer() });
    expect(types()).toEqual(['moved', 'media']);
  });

  test('tries again if the other side makes an offer at the same time', () => {
    const { agent, types } = continued(travelled().former);
    const first = agent.request('INVITE');
    agent.answer(first, 491);
    agent.take();
    agent.clock.advance(3_100);
    const second = agent.request('INVITE');
    expect(Number.parseInt(second.headers.get('CSeq')!, 10)).toBeGreaterThan(
      Number.parseInt(first.headers.get('CSeq')!, 10),
    );
    agent.answer(second, 200, { headers: [contact], body: sdpAnswer() });
    expect(types()).toEqual(['moved', 'media']);
  });

  test.each([
    [488, { reason: 'not_moved', text: '488 Because' }, ['ACK', 'BYE']],
    [403, { reason: 'not_moved', text: '403 Because' }, ['ACK', 'BYE']],
    [481, { reason: 'remote_hung_up', text: 'the other side does not know this call' }, ['ACK']],
  ])('ends if the provider answers %i, and says why', (status, why, sent) => {
    const { agent, events } = continued(travelled().former);
    agent.answer(agent.request('INVITE'), status);
    expect(events).toEqual([{ type: 'ended', status, ...why }]);
    expect(agent.titles()).toEqual(sent);
  });

  test('ends if the provider does not answer within 10 s, and also an answer that comes too late', () => {
    const { agent, events } = continued(travelled().former);
    const invite = agent.request('INVITE');
    agent.clock.advance(9_900);
    expect(events).toEqual([]);
    agent.take();
    agent.clock.advance(200);
    expect(events).toMatchObject([{ type: 'ended', reason: 'not_moved', text: 'the provider does not answer' }]);
    expect(agent.titles()).toEqual(['BYE']);
    agent.answer(invite, 200, { headers: [contact], body: sdpAnswer() });
    expect(agent.titles()).toEqual(['ACK', 'BYE']);
  });

  test('ends with the other side even before it has accepted', () => {
    const { former } = travelled();
    const { agent, events } = continued(former);
    agent.take();
    agent.receiveText(theirs(former, 'BYE'));
    expect(events).toMatchObject([{ type: 'ended', reason: 'remote_hung_up' }]);
    expect(agent.titles()).toEqual(['200 BYE']);
    agent.clock.advance(60_000);
    expect(agent.titles()).toEqual([]);
  });

  test('is still on hold, and can be taken off it there', () => {
    const { former } = travelled();
    const { agent, types } = continued({ ...former, held: true });
    agent.answer(agent.request('INVITE'), 200, { headers: [contact], body: sdpAnswer({ direction: 'sendonly' }) });
    expect(types()).toEqual(['moved', 'media']);
    agent.take();
    const body = sdpAnswer();
    agent.receiveText(
      theirs(former, 'INVITE').replace('Contact', 'Content-Type: application/sdp\nContact').trimEnd() + `\n\n${body}`,
    );
    expect(types()).toEqual(['moved', 'media', 'media', 'held']);
  });

  test.each([
    ['to', '<sip:nobody'],
    ['remoteTarget', 'http://x'],
  ])('is refused with a broken %s', (field, value) => {
    const { former } = travelled();
    expect(() => continued({ ...former, dialog: { ...former.dialog, [field]: value, routes: [] } })).toThrow(
      expect.objectContaining({ code: 'SIP_MALFORMED' }),
    );
  });
});
