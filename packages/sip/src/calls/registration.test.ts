import { describe, expect, test } from '@jest/globals';
import { account, TestAgent, challenge } from '../testing/test-agent.js';
import type { RegistrationEvent } from './registration.js';

function start(transport: 'UDP' | 'TCP' = 'UDP') {
  const agent = new TestAgent(transport);
  const events: RegistrationEvent[] = [];
  const registration = agent.agent.register({ expiresSeconds: 300, onEvent: (event) => events.push(event) });
  return { agent, events, registration };
}

const expires = (seconds: number): readonly [string, string] => [
  'Contact',
  `<sip:room@192.0.2.1:5060>;expires=${seconds}`,
];

describe('registration', () => {
  test('answers a challenge with the next CSeq and the same Call-ID, and reports the granted lifetime', () => {
    const { agent, events } = start();
    const first = agent.request('REGISTER');
    expect(first.headers.get('Authorization')).toBeUndefined();
    agent.answer(first, 401, { headers: [challenge('n1')] });
    const second = agent.request('REGISTER');
    expect(second.headers.get('Authorization')).toMatch(
      /username="room".*nonce="n1".*uri="sip:pbx\.test".*nc=00000001/,
    );
    expect(second.headers.get('CSeq')).toBe('2 REGISTER');
    expect(second.headers.get('Call-ID')).toBe(first.headers.get('Call-ID'));
    expect(second.headers.get('From')).toBe(first.headers.get('From'));
    expect(second.headers.get('Via')).not.toBe(first.headers.get('Via'));
    agent.answer(second, 200, { headers: [expires(120)] });
    expect(events).toEqual([{ type: 'registered', expiresSeconds: 120 }]);
  });

  test('is refreshed within a day, whatever the registrar grants', () => {
    const { agent } = start();
    agent.answer(agent.request('REGISTER'), 200, { headers: [expires(999_999_999)] });
    agent.clock.advance(86_399_999);
    expect(agent.titles()).toEqual([]);
    agent.clock.advance(1);
    expect(agent.titles()).toEqual(['REGISTER']);
  });

  test('works for a user name with half a surrogate pair', () => {
    const agent = new TestAgent('UDP', { ...account, username: 'a\ud800b' });
    agent.agent.register({ expiresSeconds: 300, onEvent: () => {} });
    expect(agent.request('REGISTER').headers.get('To')).toBe('<sip:a%EF%BF%BDb@pbx.test>');
  });

  test('is refreshed after half its lifetime, with the nonce count increased', () => {
    const { agent, events } = start();
    agent.answer(agent.request('REGISTER'), 401, { headers: [challenge('n1')] });
    agent.answer(agent.request('REGISTER'), 200, { headers: [expires(120)] });
    agent.clock.advance(59_999);
    expect(agent.titles()).toEqual([]);
    agent.clock.advance(1);
    const refresh = agent.request('REGISTER');
    expect(refresh.headers.get('Authorization')).toContain('nc=00000002');
    // The nonce has expired; some registrars say so, others do not.
    agent.answer(refresh, 401, { headers: [challenge('n2')] });
    const again = agent.request('REGISTER');
    expect(again.headers.get('Authorization')).toContain('nonce="n2"');
    agent.answer(again, 200, { headers: [expires(120)] });
    expect(events).toHaveLength(2);
  });

  test('gives up permanently when the password is wrong', () => {
    const { agent, events } = start();
    agent.answer(agent.request('REGISTER'), 401, { headers: [challenge('n1')] });
    agent.answer(agent.request('REGISTER'), 401, { headers: [challenge('n2')] });
    expect(events).toMatchObject([{ type: 'failed', final: true, reason: 'unauthorized', status: 401 }]);
    agent.clock.advance(3_600_000);
    expect(agent.titles()).toEqual([]);
    expect(agent.clock.pending).toBe(0);
  });

  test('gives up when the nonce is stale again and again', () => {
    const { agent, events } = start();
    for (let round = 0; round < 5; round += 1)
      agent.answer(agent.request('REGISTER'), 401, { headers: [challenge(`n${round}`, ', stale=true')] });
    expect(agent.titles()).toEqual([]);
    expect(events).toMatchObject([{ final: true, reason: 'unauthorized' }]);
  });

  test('uses the minimum lifetime demanded by a registrar (423)', () => {
    const { agent, events } = start();
    agent.answer(agent.request('REGISTER'), 423, { headers: [['Min-Expires', '1800']] });
    const second = agent.request('REGISTER');
    expect(second.headers.get('Expires')).toBe('1800');
    agent.answer(second, 200, { headers: [['Expires', '1800']] });
    expect(events).toEqual([{ type: 'registered', expiresSeconds: 1800 }]);
  });

  test('does not follow a registrar that keeps raising its minimum', () => {
    const { agent, events } = start();
    for (const seconds of ['400', '500', '600'])
      agent.answer(agent.request('REGISTER'), 423, { headers: [['Min-Expires', seconds]] });
    expect(agent.titles()).toEqual([]);
    expect(events).toMatchObject([{ type: 'failed', final: false, status: 423 }]);
  });

  test('retries with growing pauses while the registrar is silent, and registers when it is back', () => {
    const { agent, events } = start('TCP');
    const pauses: number[] = [];
    agent.take();
    for (let round = 0; round < 8; round += 1) {
      agent.clock.advance(32_000);
      expect(events.at(-1)).toMatchObject({ type: 'failed', final: false, reason: 'unreachable' });
      const failedAt = agent.clock.now();
      while (agent.sent.length === 0) agent.clock.advance(100);
      pauses.push(agent.clock.now() - failedAt);
      if (round < 7) agent.take();
    }
    expect(pauses.toSorted((a, b) => a - b)).toEqual(pauses);
    expect(pauses[0]).toBeLessThanOrEqual(2000);
    expect(pauses.at(-1)).toBeLessThanOrEqual(60_000);
    agent.answer(agent.request('REGISTER'), 200, { headers: [expires(300)] });
    expect(events.at(-1)).toEqual({ type: 'registered', expiresSeconds: 300 });
  });

  test('waits as long as a busy registrar demands', () => {
    const { agent } = start('TCP');
    agent.answer(agent.request('REGISTER'), 503, { headers: [['Retry-After', '90 (maintenance)']] });
    agent.clock.advance(89_999);
    expect(agent.titles()).toEqual([]);
    agent.clock.advance(1);
    expect(agent.titles()).toEqual(['REGISTER']);
  });

  test('uses the next address when the first one is unreachable or out of order', () => {
    const { agent, events } = start();
    const at = (host: string) => ({ transport: 'TCP', host, port: 5060 }) as const;
    agent.take();
    agent.targets = [at('192.0.2.11'), at('192.0.2.12'), at('192.0.2.13')];
    agent.broken.add('192.0.2.11');
    agent.clock.advance(32_000 + 2000);
    expect(agent.sent.map((entry) => entry.target.host).slice(-2)).toEqual(['192.0.2.11', '192.0.2.12']);
    const second = agent.take().at(-1);
    if (second?.kind !== 'request') throw new Error('no request');
    agent.answer(second, 503);
    expect(agent.sent.at(-1)?.target.host).toBe('192.0.2.13');
    agent.answer(agent.request('REGISTER'), 200, { headers: [expires(300)] });
    expect(events.at(-1)).toMatchObject({ type: 'registered' });
  });

  test('is removed on stop, challenges included', () => {
    const { agent, events, registration } = start();
    agent.answer(agent.request('REGISTER'), 200, { headers: [expires(300)] });
    registration.stop();
    const removal = agent.request('REGISTER');
    expect(removal.headers.get('Contact')).toBe('<sip:room@192.0.2.1:5060>;expires=0');
    expect(removal.headers.get('Expires')).toBe('0');
    agent.answer(removal, 401, { headers: [challenge('n1')] });
    agent.answer(agent.request('REGISTER'), 200);
    expect(events.at(-1)).toEqual({ type: 'stopped' });
    agent.clock.advance(60_000);
    expect(agent.titles()).toEqual([]);
    expect(agent.agent.activity).toEqual({ transactions: 0, calls: 0 });
  });

  test('is removed at the server that has it, even if the first one is silent', () => {
    const agent = new TestAgent();
    const at = (host: string) => ({ transport: 'UDP', host, port: 5060 }) as const;
    agent.targets = [at('192.0.2.11'), at('192.0.2.12')];
    const events: RegistrationEvent[] = [];
    const registration = agent.agent.register({ expiresSeconds: 300, onEvent: (event) => events.push(event) });
    agent.clock.advance(31_999);
    agent.take();
    agent.clock.advance(1);
    expect(agent.sent.map((entry) => entry.target.host)).toEqual(['192.0.2.12']);
    agent.answer(agent.request('REGISTER'), 200, { headers: [expires(300)] });
    registration.stop();
    expect(agent.sent.map((entry) => entry.target.host)).toEqual(['192.0.2.12']);
    agent.answer(agent.request('REGISTER'), 200);
    expect(events.at(-1)).toEqual({ type: 'stopped' });
  });

  test('stops without a registrar too', () => {
    const { agent, events, registration } = start();
    registration.stop();
    registration.stop();
    agent.clock.advance(4000);
    expect(events).toEqual([{ type: 'stopped' }]);
    agent.clock.advance(60_000);
    expect(agent.clock.pending).toBe(0);
  });

  test('announces the address seen by the registrar', () => {
    const { agent } = start();
    const first = agent.request('REGISTER');
    first.headers.set('Via', `${first.headers.get('Via')?.replace(';rport', '')};received=203.0.113.9;rport=61000`);
    agent.answer(first, 200, { headers: [['Expires', '60']] });
    agent.clock.advance(30_000);
    expect(agent.request('REGISTER').headers.get('Contact')).toBe('<sip:room@203.0.113.9:61000>;expires=300');
  });

  test('removes the address it registered before the registrar reported another one', () => {
    const [earlier, shown] = ['<sip:room@192.0.2.1:5060>', '<sip:room@203.0.113.9:61000>'];
    for (const refreshed of [false, true]) {
      const { agent, registration } = start();
      const first = agent.request('REGISTER');
      first.headers.set('Via', `${first.headers.get('Via')?.replace(';rport', '')};received=203.0.113.9;rport=61000`);
      agent.answer(first, 200, { headers: [['Expires', '60']] });
      if (refreshed) {
        agent.clock.advance(30_000);
        const refresh = agent.request('REGISTER');
        expect(refresh.headers.all('Contact')).toEqual([`${shown};expires=300`, `${earlier};expires=0`]);
        agent.answer(refresh, 200, { headers: [['Expires', '60']] });
      }
      registration.stop();
      const removed = agent.request('REGISTER').headers.all('Contact');
      expect(removed).toEqual(refreshed ? [`${shown};expires=0`] : [`${shown};expires=0`, `${earlier};expires=0`]);
    }
  });
});
