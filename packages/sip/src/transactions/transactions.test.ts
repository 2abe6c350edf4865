import { describe, expect, test } from '@jest/globals';
import { SipHeaders } from '../headers.js';
import type { SipMessage, SipRequest } from '../message.js';
import { parseMessage, writeMessage } from '../message.js';
import { ManualClock } from '@bloom/time/testing';
import { countedRandomness } from '../testing/test-agent.js';
import type { Target } from '../transport/target.js';
import type { ServerTransaction } from './server-transaction.js';
import { responseTo, TransactionLayer } from './transaction-layer.js';

const at = (transport: 'UDP' | 'TCP'): Target => ({ transport, host: '192.0.2.10', port: 5060 });

function setUp() {
  const clock = new ManualClock();
  const sent: { at: number; message: SipMessage; target: Target }[] = [];
  const requests: { request: SipRequest; transaction: ServerTransaction }[] = [];
  const events: string[] = [];
  const layer = new TransactionLayer({
    clock,
    randomness: countedRandomness(),
    send: (message, target) => sent.push({ at: clock.now(), message, target }),
    sentBy: () => ({ host: '192.0.2.1', port: 5060 }),
    onRequest: (request, transaction) => requests.push({ request, transaction }),
    onAck: () => events.push('ack'),
    onNoAck: () => events.push('no ack'),
    onLateSuccess: () => events.push('late'),
  });
  const start = (method: string, transport: 'UDP' | 'TCP' = 'UDP') => {
    const request = requestOf(method);
    layer.request(request, at(transport), {
      onResponse: (response) => events.push(String(response.status)),
      onFailure: (failure) => events.push(failure),
    });
    return request;
  };
  const respond = (request: SipRequest, status: number) =>
    layer.receive(responseTo(request, { status, reason: 'x', toTag: status === 100 ? undefined : 'peer' }), at('UDP'));
  return { clock, sent, requests, events, layer, start, respond, times: () => sent.map((entry) => entry.at) };
}

function requestOf(method: string): SipRequest {
  const headers = new SipHeaders([
    ['From', '<sip:a@h>;tag=1'],
    ['To', '<sip:b@h>'],
    ['Call-ID', 'c'],
    ['CSeq', `1 ${method}`],
  ]);
  return { kind: 'request', method, uri: 'sip:b@h', headers, body: Buffer.alloc(0) };
}

function incoming(method: string, via = 'SIP/2.0/UDP 192.0.2.10:5062;branch=z9hG4bKx;rport'): SipMessage {
  const request = requestOf(method);
  request.headers.set('Via', via);
  return parseMessage(writeMessage(request));
}

describe('a client transaction', () => {
  test('retransmits INVITE with doubling intervals until timer B (17.1.1.2)', () => {
    const { clock, start, events, times, layer } = setUp();
    start('INVITE');
    clock.advance(40_000);
    expect(times()).toEqual([0, 500, 1500, 3500, 7500, 15_500, 31_500]);
    expect(events).toEqual(['timeout']);
    expect(layer.size).toBe(0);
  });

  test('retransmits other methods at intervals up to 4 s until timer F (17.1.2.2)', () => {
    const { clock, start, events, times } = setUp();
    start('OPTIONS');
    clock.advance(40_000);
    expect(times()).toEqual([0, 500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]);
    expect(events).toEqual(['timeout']);
  });

  test('retransmits nothing over TCP', () => {
    const { clock, start, events, times } = setUp();
    start('INVITE', 'TCP');
    start('OPTIONS', 'TCP');
    clock.advance(40_000);
    expect(times()).toEqual([0, 0]);
    expect(events).toEqual(['timeout', 'timeout']);
  });

  test('slows down once the server is working on the request', () => {
    const { clock, start, respond, times } = setUp();
    const request = start('OPTIONS');
    respond(request, 100);
    clock.advance(9000);
    expect(times()).toEqual([0, 500, 4500, 8500]);
  });

  test('neither retransmits nor times out an INVITE that rings', () => {
    const { clock, start, respond, events, times } = setUp();
    const request = start('INVITE');
    respond(request, 180);
    clock.advance(600_000);
    expect(times()).toEqual([0]);
    expect(events).toEqual(['180']);
  });

  test('acknowledges a rejection each time it arrives, within the transaction, for 32 s (timer D)', () => {
    const { clock, sent, start, respond, events, layer } = setUp();
    const request = start('INVITE');
    respond(request, 486);
    respond(request, 486);
    expect(events).toEqual(['486']);
    const acks = sent.slice(1).map((entry) => entry.message as SipRequest);
    expect(acks.map((ack) => ack.method)).toEqual(['ACK', 'ACK']);
    expect(acks[0]?.headers.get('Via')).toBe(request.headers.get('Via'));
    expect(acks[0]?.headers.get('To')).toBe('<sip:b@h>;tag=peer');
    clock.advance(32_000);
    expect(layer.size).toBe(0);
    respond(request, 486);
    expect(sent).toHaveLength(3);
  });

  test('passes on every 2xx to INVITE for 32 s, and later ones as late (RFC 6026)', () => {
    const { clock, start, respond, events } = setUp();
    const request = start('INVITE');
    respond(request, 200);
    respond(request, 200);
    clock.advance(32_000);
    respond(request, 200);
    expect(events).toEqual(['200', '200', 'late']);
  });

  test('absorbs copies of a final response for 5 s (timer K)', () => {
    const { clock, start, respond, events, layer } = setUp();
    const request = start('BYE');
    respond(request, 200);
    respond(request, 200);
    clock.advance(4999);
    expect(layer.size).toBe(1);
    clock.advance(1);
    expect(layer.size).toBe(0);
    expect(events).toEqual(['200']);
  });

  test('fails immediately when its own hop is unreachable', () => {
    const { start, events, layer } = setUp();
    start('INVITE', 'TCP');
    layer.transportFailed({ ...at('TCP'), port: 5061 });
    expect(events).toEqual([]);
    layer.transportFailed(at('TCP'));
    expect(events).toEqual(['transport']);
  });

  test('continues an INVITE that rings when another message cannot be sent over UDP', () => {
    const { start, respond, events, layer } = setUp();
    const request = start('INVITE');
    start('OPTIONS');
    respond(request, 180);
    layer.transportFailed(at('UDP'));
    respond(request, 200);
    expect(events).toEqual(['180', 'transport', '200']);
  });

  test('ignores responses with another branch, another method, or two Vias (17.1.3, 8.1.3.3)', () => {
    const { start, events, layer } = setUp();
    const request = start('OPTIONS');
    const response = (change: (headers: SipHeaders) => void) => {
      const made = responseTo(request, { status: 200, reason: 'OK', toTag: 'x' });
      change(made.headers);
      layer.receive(made, at('UDP'));
    };
    response((headers) => headers.set('Via', 'SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKother'));
    response((headers) => headers.set('CSeq', '1 BYE'));
    response((headers) => headers.add('Via', 'SIP/2.0/UDP 192.0.2.7;branch=z9hG4bKproxy'));
    response((headers) => headers.set('CSeq'));
    expect(events).toEqual([]);
    response(() => {});
    expect(events).toEqual(['200']);
  });
});

describe('a server transaction', () => {
  test('answers a repeated request with the same response for 32 s (timer J)', () => {
    const { clock, sent, requests, layer } = setUp();
    layer.receive(incoming('BYE'), at('UDP'));
    layer.receive(incoming('BYE'), at('UDP'));
    const only = requests[0];
    expect(requests).toHaveLength(1);
    expect(sent).toHaveLength(0);
    only?.transaction.respond(responseTo(only.request, { status: 200, reason: 'OK', toTag: 't' }));
    layer.receive(incoming('BYE'), at('UDP'));
    expect(sent).toHaveLength(2);
    expect(sent[1]?.message).toBe(sent[0]?.message);
    clock.advance(32_000);
    expect(layer.size).toBe(0);
  });

  test('retransmits its response to INVITE until the ACK, for 2xx and others alike (timers G and H)', () => {
    for (const status of [200, 488]) {
      const { clock, requests, events, layer, times } = setUp();
      layer.receive(incoming('INVITE'), at('UDP'));
      const only = requests[0];
      only?.transaction.respond(responseTo(only.request, { status, reason: 'x', toTag: 't' }));
      clock.advance(5000);
      expect(times()).toEqual([0, 500, 1500, 3500]);
      layer.receive(incoming('ACK'), at('UDP'));
      clock.advance(60_000);
      expect(times()).toHaveLength(4);
      expect(events).toEqual(['ack']);
      expect(layer.size).toBe(0);
    }
  });

  test('reports when the ACK never arrives', () => {
    const { clock, requests, events, layer, times } = setUp();
    layer.receive(incoming('INVITE'), at('UDP'));
    const only = requests[0];
    only?.transaction.respond(responseTo(only.request, { status: 200, reason: 'OK', toTag: 't' }));
    clock.advance(32_000);
    expect(events).toEqual(['no ack']);
    expect(times()).toEqual([0, 500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]);
  });

  test('keeps requests with different branches, senders and methods apart (17.2.3)', () => {
    const { requests, layer } = setUp();
    for (const via of [
      'SIP/2.0/UDP 192.0.2.10:5062;branch=z9hG4bKa',
      'SIP/2.0/UDP 192.0.2.10:5062;branch=z9hG4bKb',
      'SIP/2.0/UDP 192.0.2.11:5062;branch=z9hG4bKa',
      'SIP/2.0/UDP 192.0.2.10:5062;branch=z9hG4bKa',
      // RFC 2543, without the magic cookie.
      'SIP/2.0/UDP 192.0.2.10:5062',
      'SIP/2.0/UDP 192.0.2.10:5062',
    ]) {
      layer.receive(incoming('OPTIONS', via), at('UDP'));
      layer.receive(incoming('BYE', via), at('UDP'));
    }
    expect(requests).toHaveLength(8);
  });

  test('tells the sender which address it came from, and responds there (RFC 3581)', () => {
    const { sent, requests, layer } = setUp();
    const source = { transport: 'UDP', host: '203.0.113.5', port: 61_000 } as const;
    layer.receive(incoming('OPTIONS', 'SIP/2.0/UDP 10.0.0.1:5062;rport;branch=z9hG4bKa'), source);
    layer.receive(incoming('OPTIONS', 'SIP/2.0/UDP 10.0.0.1:5062;branch=z9hG4bKb'), source);
    for (const { request, transaction } of requests)
      transaction.respond(responseTo(request, { status: 200, reason: 'OK', toTag: 't' }));
    expect(sent.map((entry) => `${entry.target.host}:${entry.target.port}`)).toEqual([
      '203.0.113.5:61000',
      '203.0.113.5:5062',
    ]);
    expect(sent[0]?.message.headers.get('Via')).toBe(
      'SIP/2.0/UDP 10.0.0.1:5062;rport=61000;branch=z9hG4bKa;received=203.0.113.5',
    );
  });

  test('limits a flood', () => {
    const { requests, layer } = setUp();
    for (let count = 0; count < 3000; count += 1)
      layer.receive(incoming('OPTIONS', `SIP/2.0/UDP 192.0.2.10;branch=z9hG4bK${count}`), at('UDP'));
    expect(requests).toHaveLength(1000);
  });

  test('is not kept for a request whose CSeq names another method', () => {
    const { requests, sent, layer } = setUp();
    for (let count = 0; count < 1000; count += 1) {
      const request = requestOf('OPTIONS');
      request.headers.set('Via', `SIP/2.0/UDP 192.0.2.66;branch=z9hG4bK${count}`);
      request.headers.set('CSeq', '1 INFO');
      layer.receive(parseMessage(writeMessage(request)), at('UDP'));
    }
    expect(sent).toHaveLength(1000);
    layer.receive(incoming('BYE'), at('UDP'));
    expect(requests).toHaveLength(1);
  });
});
