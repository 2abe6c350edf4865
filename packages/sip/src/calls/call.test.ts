import { describe, expect, test } from '@jest/globals';
import type { SipRequest } from '../message.js';
import { answered, contact, dial, routes } from '../testing/dialled-call.js';
import { challenge, sdpAnswer, TestAgent } from '../testing/test-agent.js';
import type { Call } from './call.js';
import type { CallEvent } from './call-options.js';

const minutes = 60_000;

/** Returns a request from the other side within the call. */
function theirs(
  call: Call,
  invite: SipRequest,
  options: { method: string; sequence: number; body?: string; headers?: string },
) {
  const from = invite.headers.get('From') as string;
  const { method, sequence, body = '' } = options;
  const type = body === '' ? '' : 'Content-Type: application/sdp\n';
  return `${method} sip:room@192.0.2.1:5060 SIP/2.0
Via: SIP/2.0/TCP 192.0.2.20:5062;branch=z9hG4bK-${method === 'ACK' ? 'ack' : 'their'}-${sequence};rport
From: <sip:+49301234@pbx.test>;tag=peer
To: ${from}
Call-ID: ${call.callId}
CSeq: ${sequence} ${method}
Contact: <sip:moved@192.0.2.21:5064>
${options.headers ?? ''}${type}
${body}`.replace(/\n\n?$/, (end) => (body === '' ? '\n\n' : end));
}

const tcp = { transport: 'TCP', host: '192.0.2.10', port: 5060 } as const;

describe('an outgoing call', () => {
  test('rings, is answered, acknowledged through the routes, and hung up by us', () => {
    const { agent, call, events, types } = dial();
    const invite = agent.request('INVITE');
    expect(invite.uri).toBe('sip:+49301234@pbx.test');
    expect(invite.headers.get('From')).toMatch(/^<sip:room@pbx\.test>;tag=/);
    expect(invite.body.toString()).toContain('m=audio 40000 RTP/AVP 0 8 101');
    agent.answer(invite, 100);
    expect(types()).toEqual([]);
    agent.answer(invite, 180, { headers: [contact] });
    agent.answer(invite, 200, { headers: [contact, ...routes], body: sdpAnswer() });
    const ack = agent.request('ACK');
    expect(ack.uri).toBe('sip:phone@192.0.2.20:5062');
    expect(ack.headers.all('Route')).toEqual(['<sip:core.test;lr>', '<sip:edge.test;lr>']);
    expect(ack.headers.get('CSeq')).toBe('1 ACK');
    expect(agent.lookups.at(-1)).toBe('core.test');
    expect(types()).toEqual(['ringing', 'answered', 'media']);
    expect(events.at(-1)).toMatchObject({
      audio: { codec: { name: 'PCMU' }, remote: { address: '192.0.2.20', port: 4000 }, direction: 'sendrecv' },
    });

    call.hangUp();
    const bye = agent.request('BYE');
    expect(bye.headers.get('CSeq')).toBe('2 BYE');
    expect(bye.headers.all('Route')).toEqual(['<sip:core.test;lr>', '<sip:edge.test;lr>']);
    expect(events.at(-1)).toEqual({ type: 'ended', reason: 'hung_up', status: undefined, text: '' });
    agent.answer(bye, 200);
    expect(agent.agent.activity.calls).toBe(0);
    agent.clock.advance(minutes);
    expect(agent.clock.pending).toBe(0);
    expect(agent.titles()).toEqual([]);
  });

  test('goes through a strict router in the form it expects', () => {
    const { agent } = dial();
    agent.answer(agent.request('INVITE'), 200, {
      headers: [contact, ['Record-Route', '<sip:old.test>']],
      body: sdpAnswer(),
    });
    const ack = agent.request('ACK');
    expect(ack.uri).toBe('sip:old.test');
    expect(ack.headers.all('Route')).toEqual(['<sip:phone@192.0.2.20:5062>']);
  });

  test('answers a 407 with credentials, and repeats them in the ACK', () => {
    const { agent } = dial();
    const proxy: [string, string] = ['Proxy-Authenticate', challenge('n1')[1]];
    agent.answer(agent.request('INVITE'), 407, { headers: [proxy] });
    const [ack, invite] = agent.take() as [SipRequest, SipRequest];
    expect(ack.method).toBe('ACK');
    expect(invite.method).toBe('INVITE');
    expect(invite.headers.get('Proxy-Authorization')).toContain('nonce="n1"');
    expect(invite.headers.get('CSeq')).toBe('2 INVITE');
    agent.answer(invite, 200, { headers: [contact], body: sdpAnswer() });
    expect(agent.request('ACK').headers.get('Proxy-Authorization')).toBe(invite.headers.get('Proxy-Authorization'));
  });

  test('ends on a wrong password, and repeats a challenged BYE with credentials', () => {
    const wrong = dial();
    const proxy = (nonce: string): [string, string] => ['Proxy-Authenticate', challenge(nonce)[1]];
    wrong.agent.answer(wrong.agent.request('INVITE'), 407, { headers: [proxy('n1')] });
    const second = wrong.agent.take().at(-1) as SipRequest;
    wrong.agent.answer(second, 407, { headers: [proxy('n2')] });
    expect(wrong.events).toMatchObject([{ type: 'ended', reason: 'unauthorized', status: 407 }]);
    expect(wrong.agent.titles()).toEqual(['ACK']);

    const { agent, call } = answered();
    call.hangUp();
    agent.answer(agent.request('BYE'), 407, { headers: [proxy('n1')] });
    const again = agent.request('BYE');
    expect(again.headers.get('Proxy-Authorization')).toContain('nonce="n1"');
    expect(again.headers.get('CSeq')).toBe('3 BYE');
    agent.answer(again, 200);
    expect(agent.agent.activity.calls).toBe(0);
  });

  test.each([
    [302, 'redirected'],
    [403, 'unauthorized'],
    [404, 'not_found'],
    [408, 'no_answer'],
    [480, 'unavailable'],
    [486, 'busy'],
    [488, 'not_acceptable'],
    [500, 'server_error'],
    [503, 'server_error'],
    [600, 'busy'],
    [603, 'declined'],
    [499, 'failed'],
  ])('ends when answered by %i, with the reason %s', (status, reason) => {
    const { agent, events } = dial();
    agent.answer(agent.request('INVITE'), status, { reason: 'So It Is' });
    expect(agent.titles()).toEqual(['ACK']);
    expect(events).toEqual([{ type: 'ended', reason, status, text: `${status} So It Is` }]);
    expect(agent.agent.activity.calls).toBe(0);
  });

  test('is cancelled while ringing', () => {
    const { agent, call, events } = dial();
    const invite = agent.request('INVITE');
    agent.answer(invite, 180);
    call.hangUp();
    const cancel = agent.request('CANCEL');
    expect(cancel.headers.get('Via')).toBe(invite.headers.get('Via'));
    expect(cancel.headers.get('CSeq')).toBe('1 CANCEL');
    expect(cancel.headers.get('To')).not.toContain('tag');
    agent.answer(cancel, 200);
    agent.answer(invite, 487);
    expect(agent.titles()).toEqual(['ACK']);
    expect(events.filter((event) => event.type === 'ended')).toEqual([
      { type: 'ended', reason: 'cancelled', status: undefined, text: '' },
    ]);
    expect(agent.agent.activity.calls).toBe(0);
    expect(agent.clock.pending).toBe(0);
  });

  test('sends CANCEL only after the first response when hung up before it', () => {
    const { agent, call } = dial();
    const invite = agent.request('INVITE');
    call.hangUp();
    expect(agent.titles()).toEqual([]);
    agent.answer(invite, 100);
    expect(agent.titles()).toEqual(['CANCEL']);
  });

  test('is acknowledged and ended with BYE when answered at the moment of cancelling', () => {
    const { agent, call, events } = dial();
    const invite = agent.request('INVITE');
    agent.answer(invite, 180);
    call.hangUp();
    const cancel = agent.request('CANCEL');
    agent.answer(invite, 200, { headers: [contact], body: sdpAnswer() });
    const [ack, bye] = agent.take() as [SipRequest, SipRequest];
    expect(ack.method).toBe('ACK');
    expect(bye.method).toBe('BYE');
    agent.answer(cancel, 200);
    agent.answer(bye, 200);
    expect(events.map((event) => event.type)).toEqual(['ringing', 'ended']);
    expect(agent.agent.activity.calls).toBe(0);
  });

  test('sends nothing when hung up during the address lookup', () => {
    const agent = new TestAgent();
    agent.targets = undefined;
    const call = agent.agent.dial({
      number: '1',
      media: { address: '192.0.2.1', port: 1 },
      codecs: ['PCMU'],
      ringTimeoutMs: 1000,
      onEvent: () => {},
    });
    call.hangUp();
    expect(agent.agent.activity.calls).toBe(0);
    agent.clock.advance(minutes);
    expect(agent.titles()).toEqual([]);
  });

  test('is cancelled when nobody answers in time', () => {
    const { agent, events } = dial();
    const invite = agent.request('INVITE');
    agent.answer(invite, 180);
    agent.clock.advance(60_000);
    expect(agent.titles()).toEqual(['CANCEL']);
    expect(events.at(-1)).toMatchObject({ reason: 'no_answer' });
    // Not even the CANCEL is answered.
    agent.clock.advance(64_000);
    expect(agent.agent.activity).toEqual({ transactions: 0, calls: 0 });
  });

  test('ends as unreachable when the provider is silent or has no address', () => {
    const silent = dial('UDP');
    silent.agent.clock.advance(32_000);
    expect(silent.agent.titles()).toHaveLength(7);
    expect(silent.events).toMatchObject([{ type: 'ended', reason: 'unreachable' }]);
    const agent = new TestAgent();
    agent.targets = [];
    const events: CallEvent[] = [];
    const media = { address: '192.0.2.1', port: 1 };
    agent.agent.dial({
      number: '1',
      media,
      codecs: ['PCMU'],
      ringTimeoutMs: 9,
      onEvent: (event) => events.push(event),
    });
    expect(events).toMatchObject([{ type: 'ended', reason: 'unreachable', text: 'the provider has no address' }]);
  });

  test('acknowledges a repeated 200 again, and ends calls answered by other branches of a fork', () => {
    const { agent, types } = dial('UDP');
    const invite = agent.request('INVITE');
    const success = { headers: [contact], body: sdpAnswer() };
    agent.answer(invite, 200, success);
    agent.request('ACK');
    agent.answer(invite, 200, success);
    expect(agent.request('ACK').headers.get('To')).toContain('tag=peer');
    agent.answer(invite, 200, { ...success, tag: 'second' });
    const [ack, bye] = agent.take() as [SipRequest, SipRequest];
    expect(ack.headers.get('To')).toContain('tag=second');
    expect(bye.method).toBe('BYE');
    expect(bye.headers.get('To')).toContain('tag=second');
    expect(types()).toEqual(['answered', 'media']);
  });

  test('plays early media even if the 200 does not repeat its description', () => {
    const { agent, events } = dial();
    const invite = agent.request('INVITE');
    agent.answer(invite, 183, { headers: [contact], body: sdpAnswer({ port: 4444 }) });
    agent.answer(invite, 200, { headers: [contact] });
    expect(events.map((event) => event.type)).toEqual(['media', 'ringing', 'answered', 'media']);
    expect(events.at(-1)).toMatchObject({ early: false, audio: { remote: { port: 4444 } } });
  });

  test.each([
    ['nothing', undefined],
    ['no codec of ours', sdpAnswer({ formats: '9' })],
    ['refused audio', sdpAnswer({ port: 0 })],
    ['garbage', 'hello'],
  ])('acknowledges and ends a call whose answer has %s', (_, body) => {
    const { agent, events } = dial();
    agent.answer(agent.request('INVITE'), 200, { headers: [contact], ...(body === undefined ? {} : { body }) });
    expect(agent.titles()).toEqual(['ACK', 'BYE']);
    expect(events).toMatchObject([{ type: 'ended', reason: 'not_acceptable' }]);
  });

  test('is hung up by the other side once, however often its BYE arrives', () => {
    const { agent, call, invite, events } = answered();
    const bye = theirs(call, invite, { method: 'BYE', sequence: 1 });
    agent.receiveText(bye, { ...tcp, transport: 'UDP' });
    agent.receiveText(bye, { ...tcp, transport: 'UDP' });
    expect(agent.titles()).toEqual(['200 BYE', '200 BYE']);
    expect(events.at(-1)).toMatchObject({ type: 'ended', reason: 'remote_hung_up' });
    call.hangUp();
    expect(agent.titles()).toEqual([]);
    expect(agent.agent.activity.calls).toBe(0);
  });

  test('is cancelled when the other side ends it before answering, and is over even without a last response', () => {
    const { agent, call, events } = dial('UDP');
    const invite = agent.request('INVITE');
    agent.answer(invite, 183, { headers: [contact] });
    agent.receiveText(theirs(call, invite, { method: 'BYE', sequence: 1 }), tcp);
    expect(events.at(-1)).toMatchObject({ type: 'ended', reason: 'remote_hung_up' });
    expect(agent.titles()).toEqual(['200 BYE', 'CANCEL']);
    agent.clock.advance(minutes);
    expect(agent.agent.activity).toEqual({ transactions: 0, calls: 0 });
    expect(agent.clock.pending).toBe(0);
  });

  test('is held and resumed by re-INVITE, and follows the other side to a new address', () => {
    const { agent, call, invite, events } = answered();
    agent.receiveText(
      theirs(call, invite, { method: 'INVITE', sequence: 1, body: sdpAnswer({ direction: 'sendonly' }) }),
      tcp,
    );
    const held = agent.take()[0];
    expect(held).toMatchObject({ status: 200 });
    expect(held?.body.toString()).toContain('a=recvonly');
    // Not acknowledged, so another offer has to wait.
    agent.receiveText(theirs(call, invite, { method: 'INVITE', sequence: 2, body: sdpAnswer() }), tcp);
    expect(agent.titles()).toEqual(['500 INVITE']);
    agent.receiveText(theirs(call, invite, { method: 'ACK', sequence: 1 }), tcp);
    agent.receiveText(theirs(call, invite, { method: 'INVITE', sequence: 3, body: sdpAnswer() }), tcp);
    expect(agent.take()[0]?.body.toString()).toContain('a=sendrecv');
    agent.receiveText(theirs(call, invite, { method: 'ACK', sequence: 3 }), tcp);
    expect(events.flatMap((event) => (event.type === 'held' ? [event.held] : []))).toEqual([true, false]);
    call.hangUp();
    expect(agent.request('BYE').uri).toBe('sip:moved@192.0.2.21:5064');
  });

  test.each(['0.0.0.0', '::', '0:0:0:0:0:0:0:0'])('treats an old-style hold to %s as a hold', (address) => {
    const { agent, call, invite, events } = answered();
    const body = sdpAnswer({ address });
    agent.receiveText(theirs(call, invite, { method: 'UPDATE', sequence: 1, body }), tcp);
    expect(agent.titles()).toEqual(['200 UPDATE']);
    expect(events.slice(-2)).toMatchObject([
      { type: 'media', audio: { remote: undefined, direction: 'inactive' } },
      { type: 'held', held: true },
    ]);
  });

  test('makes the offer when a re-INVITE has none, and takes the answer from the ACK', () => {
    const { agent, call, invite, events } = answered();
    agent.receiveText(theirs(call, invite, { method: 'INVITE', sequence: 1 }), tcp);
    expect(agent.take()[0]?.body.toString()).toContain('m=audio 40000 RTP/AVP 0 8 101');
    agent.receiveText(theirs(call, invite, { method: 'ACK', sequence: 1, body: sdpAnswer({ port: 5555 }) }), tcp);
    expect(events.at(-1)).toMatchObject({ type: 'media', audio: { remote: { port: 5555 } } });
  });

  test('repeats its answer to a re-INVITE until it is acknowledged, and ends the call when it never is', () => {
    const { agent, call, invite, events } = answered();
    agent.receiveText(theirs(call, invite, { method: 'INVITE', sequence: 1, body: sdpAnswer() }), tcp);
    agent.clock.advance(31_999);
    expect(agent.titles().every((title) => title === '200 INVITE')).toBe(true);
    agent.clock.advance(1);
    expect(agent.titles()).toEqual(['BYE']);
    expect(events.at(-1)).toMatchObject({ type: 'ended', reason: 'failed' });
  });

  test('continues unchanged when the rejection of a re-INVITE is never acknowledged', () => {
    const { agent, call, invite, events } = answered();
    const body = sdpAnswer({ formats: '9' });
    agent.receiveText(theirs(call, invite, { method: 'INVITE', sequence: 1, body }), tcp);
    expect(agent.titles()).toEqual(['488 INVITE']);
    agent.clock.advance(60_000);
    expect(agent.titles().filter((title) => title !== '488 INVITE')).toEqual([]);
    expect(call.state).toBe('answered');
    expect(events.at(-1)?.type).toBe('media');
  });

  test('answers the other requests allowed within a call', () => {
    const { agent, call, invite, events } = answered();
    const ask = (method: string, sequence: number, more = {}) => {
      agent.receiveText(theirs(call, invite, { method, sequence, ...more }), tcp);
      return agent.titles();
    };
    expect(ask('OPTIONS', 1)).toEqual(['200 OPTIONS']);
    // Refreshes a session timer (RFC 4028).
    expect(ask('UPDATE', 2, { headers: 'Session-Expires: 1800;refresher=uac\n' })).toEqual(['200 UPDATE']);
    expect(ask('NOTIFY', 3)).toEqual(['405 NOTIFY']);
    expect(ask('INVITE', 4, { headers: 'Require: 100rel\n', body: sdpAnswer() })).toEqual(['420 INVITE']);
    expect(ask('INVITE', 5, { body: sdpAnswer({ formats: '9' }) })).toEqual(['488 INVITE']);
    expect(ask('OPTIONS', 3)).toEqual(['500 OPTIONS']);
    agent.receiveText(
      theirs(call, invite, { method: 'INFO', sequence: 7, headers: 'Content-Type: application/dtmf-relay\n' }).replace(
        /\n\n$/,
        '\n\nSignal=5\r\nDuration=160\r\n',
      ),
      tcp,
    );
    expect(agent.titles()).toEqual(['200 INFO']);
    expect(events.at(-1)).toEqual({ type: 'digit', digit: '5' });
  });

  test('rejects requests that belong to no call', () => {
    const { agent, call, invite } = answered();
    agent.receiveText(theirs(call, invite, { method: 'BYE', sequence: 9 }).replace('tag=peer', 'tag=other'), tcp);
    expect(agent.titles()).toEqual(['481 BYE']);
    agent.receiveText(theirs(call, invite, { method: 'CANCEL', sequence: 9 }).replace(call.callId, 'unknown'), tcp);
    expect(agent.titles()).toEqual(['481 CANCEL']);
    const fresh = theirs(call, invite, { method: 'INVITE', sequence: 1 }).replace(
      /^To: .*$/m,
      'To: <sip:room@192.0.2.1>',
    );
    agent.receiveText(fresh, tcp);
    expect(agent.titles()).toEqual(['480 INVITE']);
  });

  test('lets the other side hang up despite any number of strangers', () => {
    const { agent, call, invite, events } = answered();
    for (let count = 0; count < 3000; count += 1) {
      const stray = theirs(call, invite, { method: 'INVITE', sequence: count + 1 });
      agent.receiveText(stray.replace(/^To: .*$/m, 'To: <sip:room@192.0.2.1>'), tcp);
    }
    expect(new Set(agent.titles())).toEqual(new Set(['480 INVITE']));
    agent.receiveText(theirs(call, invite, { method: 'BYE', sequence: 1 }), tcp);
    expect(agent.titles()).toEqual(['200 BYE']);
    expect(events.at(-1)).toMatchObject({ reason: 'remote_hung_up' });
  });

  test('emits nothing after a listener has ended it', () => {
    const agent = new TestAgent('TCP');
    const told: string[] = [];
    const call = agent.agent.dial({
      number: '1',
      media: { address: '192.0.2.1', port: 1 },
      codecs: ['PCMU'],
      ringTimeoutMs: 1000,
      onEvent: (event) => {
        told.push(event.type);
        if (event.type === 'answered') call.hangUp();
      },
    });
    agent.answer(agent.request('INVITE'), 200, { headers: [contact], body: sdpAnswer() });
    expect(agent.titles()).toEqual(['ACK', 'BYE']);
    expect(told).toEqual(['answered', 'ended']);
  });

  test('survives thirty silent minutes', () => {
    const { agent, call, events } = answered();
    agent.clock.advance(30 * minutes);
    expect(agent.titles()).toEqual([]);
    expect(events.at(-1)?.type).toBe('media');
    call.hangUp();
    expect(agent.titles()).toEqual(['BYE']);
  });
});

test('reads an answer in a multipart body with unsolicited parts', () => {
  const { agent, types } = dial();
  const invite = agent.request('INVITE');
  const body = `--sep\r\nContent-Type: application/sdp\r\n\r\n${sdpAnswer()}\r\n--sep\r\nContent-Type: application/isup\r\n\r\nxyz\r\n--sep--\r\n`;
  agent.answer(invite, 200, { headers: [contact], type: 'multipart/mixed;boundary=sep', body });
  expect(agent.titles()).toEqual(['ACK']);
  expect(types()).toEqual(['answered', 'media']);
});
