import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { CallEvent } from './calls/call-options.js';
import type { RegistrationEvent } from './calls/registration.js';
import { pcmAudio } from './testing/pcm-audio.js';
import { SipHeaders } from './headers.js';
import { writeRtp } from './media/rtp.js';
import type { SipRequest } from './message.js';
import { SipPhone, type SipPhoneOptions } from './sip-phone.js';
import { ManualClock, until } from '@bloom/time/testing';
import { challenge, titleOf } from './testing/test-agent.js';
import { responseTo } from './transactions/transaction-layer.js';
import { SipTransport } from './transport/sip-transport.js';
import type { Target } from './transport/target.js';

const here = '127.0.0.1';

/** A loopback provider that registers everyone with the right password, answers every call and echoes its sound. */
class Provider {
  readonly requests: SipRequest[] = [];
  silent = false;
  /** Host in its session descriptions. */
  described = here;
  readonly #waiting: (() => void)[] = [];
  #transport!: SipTransport;
  #echo!: Socket;
  #caller: Target | undefined;
  #heard = 0;

  static async open(): Promise<Provider> {
    const provider = new Provider();
    provider.#echo = createSocket('udp4');
    provider.#echo.on('message', (data, from) => {
      provider.#heard += 1;
      provider.#wake();
      if (!provider.silent) provider.#echo.send(data, from.port, from.address);
    });
    provider.#echo.bind(0, here);
    await once(provider.#echo, 'listening');
    provider.#transport = await SipTransport.open({
      address: here,
      onMessage: (message, source) => {
        if (message.kind !== 'request') return;
        provider.requests.push(message);
        provider.#caller = source;
        if (message.method !== 'ACK') provider.#transport.send(provider.#answer(message), source);
        provider.#wake();
      },
      onFailure: () => {},
    });
    return provider;
  }

  get address(): string {
    return `${here}:${this.#transport.port}`;
  }

  get heard(): number {
    return this.#heard;
  }

  /** Changes the direction of the call's sound. */
  offer(direction: string, sequence: number): void {
    const invite = this.requests.find(({ method }) => method === 'INVITE') as SipRequest;
    const headers = new SipHeaders([
      ['Via', `SIP/2.0/UDP ${this.address};branch=z9hG4bK${sequence};rport`],
      ['From', `${invite.headers.get('To')};tag=p`],
      ['To', invite.headers.get('From') as string],
      ['Call-ID', invite.headers.get('Call-ID') as string],
      ['CSeq', `${sequence} UPDATE`],
      ['Content-Type', 'application/sdp'],
    ]);
    const body = Buffer.from(`${this.#sdp()}a=${direction}\r\n`);
    this.#transport.send({ kind: 'request', method: 'UPDATE', uri: 'sip:room@test', headers, body }, this.#caller!);
  }

  /** Sends a packet of sound to where the last INVITE expects it, by default from where this provider listens. */
  speak(from = this.#echo): void {
    const invite = this.requests.findLast(({ method }) => method === 'INVITE') as SipRequest;
    const port = Number(/m=audio (\d+)/.exec(invite.body.toString())?.[1]);
    const payload = Buffer.alloc(160, 0x55);
    from.send(writeRtp({ payloadType: 8, marker: false, sequence: 1, timestamp: 160, ssrc: 1, payload }), port, here);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((go) => this.#waiting.push(go));
  }

  #wake(): void {
    for (const go of this.#waiting.splice(0)) go();
  }

  async close(): Promise<void> {
    this.#echo.close();
    await this.#transport.close();
  }

  #answer(request: SipRequest) {
    if (request.method === 'REGISTER' && !request.headers.get('Authorization')) {
      const refusal = responseTo(request, { status: 401, reason: 'Unauthorized', toTag: 'p' });
      refusal.headers.add(...challenge('n'));
      return refusal;
    }
    const response = responseTo(request, { status: 200, reason: 'OK', toTag: 'p' });
    response.headers.set('Contact', request.headers.get('Contact') ?? '<sip:p@127.0.0.1>');
    if (request.method === 'INVITE') {
      response.headers.set('Contact', `<sip:p@${this.address}>`);
      response.body = Buffer.from(this.#sdp());
    }
    return response;
  }

  #sdp(): string {
    return `v=0\r\no=- 1 1 IN IP4 ${here}\r\ns=-\r\nc=IN IP4 ${this.described}\r\nt=0 0\r\nm=audio ${this.#echo.address().port} RTP/AVP 8\r\n`;
  }
}

describe('a phone', () => {
  const open: { phone: SipPhone; provider: Provider }[] = [];
  afterEach(async () => {
    for (const { phone, provider } of open.splice(0)) {
      await phone.stop();
      await provider.close();
    }
  });

  async function start(options: Partial<SipPhoneOptions> = {}) {
    const provider = await Provider.open();
    const registration: RegistrationEvent[] = [];
    const phone = new SipPhone({ address: here, onRegistration: (event) => registration.push(event), ...options });
    open.push({ phone, provider });
    await phone.start({ address: provider.address, username: 'room', password: 'secret' });
    return { provider, phone, registration };
  }

  test('registers, calls, hears itself, hangs up and unregisters', async () => {
    const { provider, phone, registration } = await start();
    await provider.until(() => provider.requests.length === 2);
    const sound = Int16Array.from({ length: 160 }, () => 1008);
    let heard: (samples: Int16Array) => void = () => {};
    const echoed = new Promise<Int16Array>((done) => (heard = done));
    const events: CallEvent[] = [];
    const call = await phone.dial('+1 (23) 4', {
      audio: pcmAudio({ next: () => sound, received: (samples) => samples && heard(samples) }),
      onEvent: (event) => events.push(event),
    });
    expect(call.number).toBe('+1234');
    expect(phone.call).toBe(call);
    await expect(phone.dial('5', { audio: {} })).rejects.toMatchObject({ code: 'SIP_STATE' });
    // A-law preserves exactly this value.
    expect(await echoed).toEqual(sound);
    expect(call.stats().received).toBeGreaterThan(0);
    phone.hangUp();
    expect(await call.ended).toEqual({ reason: 'hung_up', status: undefined, text: '' });
    expect(phone.call).toBeUndefined();
    await phone.stop();
    expect(registration).toEqual([{ type: 'registered', expiresSeconds: 300 }, { type: 'stopped' }]);
    expect(events.map((event) => event.type)).toEqual(['answered', 'media', 'ended']);
    expect(provider.requests.map(titleOf)).toEqual(['REGISTER', 'REGISTER', 'INVITE', 'ACK', 'BYE', 'REGISTER']);
    expect(provider.requests.at(-1)?.headers.get('Expires')).toBe('0');
    const trace = phone.trace();
    expect(trace).toHaveLength(11);
    expect(JSON.stringify(trace)).not.toMatch(/response=\\"[0-9a-f]/);
  });

  test('hears nobody but its provider when the description has a private address', async () => {
    const stranger = createSocket('udp4').bind(0, '127.0.0.66');
    await once(stranger, 'listening');
    const { provider, phone } = await start();
    provider.described = '10.254.254.254';
    // Its echo would be counted too.
    provider.silent = true;
    const call = await phone.dial('1', { audio: {} });
    await provider.until(() => provider.requests.some(({ method }) => method === 'ACK'));
    provider.speak(stranger);
    await until(() => call.stats().refused === 1);
    provider.speak();
    await until(() => call.stats().received === 1);
    provider.speak(stranger);
    await until(() => call.stats().refused === 2);
    await provider.until(() => provider.heard > 0);
    stranger.close();
  });

  test('hangs up and unregisters when stopped during a call', async () => {
    const { provider, phone } = await start();
    const call = await phone.dial('1', { audio: {} });
    await provider.until(() => provider.heard > 0);
    await phone.stop();
    expect(await call.ended).toMatchObject({ reason: 'hung_up' });
    expect(provider.requests.map(titleOf).slice(-2)).toEqual(['BYE', 'REGISTER']);
    await expect(phone.dial('1', { audio: {} })).rejects.toMatchObject({ code: 'SIP_STATE' });
  });

  test('places no call when hung up before dialling', async () => {
    const { provider, phone } = await start();
    const dialling = phone.dial('1', { audio: {} });
    phone.hangUp();
    expect(await (await dialling).ended).toMatchObject({ reason: 'cancelled' });
    await provider.until(() => phone.registration === 'registered' || provider.requests.length > 1);
    expect(provider.requests.map(titleOf)).not.toContain('INVITE');
    expect(phone.call).toBeUndefined();
  });

  test('ends a call whose sound stops arriving', async () => {
    const clock = new ManualClock();
    const { provider, phone } = await start({ clock });
    provider.silent = true;
    const call = await phone.dial('1', { audio: {}, mediaTimeoutMs: 30_000 });
    await provider.until(() => provider.requests.some((request) => request.method === 'ACK'));
    clock.advance(29_000);
    expect(call.state).toBe('answered');
    clock.advance(2000);
    expect(await call.ended).toMatchObject({ reason: 'media_timeout' });
    const stopping = phone.stop();
    await provider.until(() => provider.requests.at(-1)?.headers.get('Expires') === '0');
    await stopping;
  });

  test.each(['sendonly', 'inactive'])('waits for a phone that holds the call with %s', async (direction) => {
    const clock = new ManualClock();
    const { provider, phone } = await start({ clock });
    provider.silent = true;
    const held: boolean[] = [];
    let told = (): void => {};
    const call = await phone.dial('1', {
      audio: {},
      mediaTimeoutMs: 30_000,
      onEvent: (event) => {
        if (event.type !== 'held') return;
        held.push(event.held);
        told();
      },
    });
    await provider.until(() => provider.requests.some((request) => request.method === 'ACK'));
    const change = async (to: string, sequence: number): Promise<void> => {
      const changed = new Promise<void>((done) => (told = done));
      provider.offer(to, sequence);
      await changed;
    };
    await change(direction, 1);
    // Without music on hold, nothing arrives.
    for (let passedMs = 0; passedMs < 600_000; passedMs += 1000) clock.advance(1000);
    expect(call.state).toBe('answered');
    await change('sendrecv', 2);
    expect(held).toEqual([true, false]);
    for (let passedMs = 0; passedMs < 29_000; passedMs += 1000) clock.advance(1000);
    expect(call.state).toBe('answered');
    clock.advance(2000);
    expect(await call.ended).toMatchObject({ reason: 'media_timeout' });
    const stopping = phone.stop();
    await provider.until(() => provider.requests.at(-1)?.headers.get('Expires') === '0');
    await stopping;
  });

  test('drops a message that causes an error, and keeps working', async () => {
    const faults: unknown[] = [];
    let isBroken = true;
    const { provider, phone } = await start({
      onFault: (error) => faults.push(error),
      onRegistration: () => {
        if (!isBroken) return;
        isBroken = false;
        throw new TypeError('broken');
      },
    });
    await provider.until(() => provider.requests.length === 2);
    const call = await phone.dial('1', { audio: {} });
    await provider.until(() => provider.heard > 0);
    expect(faults).toMatchObject([{ message: 'broken' }]);
    expect(call.state).toBe('answered');
  });

  test('rejects invalid numbers and invalid providers', async () => {
    const { phone } = await start();
    for (const number of ['', 'abc', '+', '1+2', '12;x', '1'.repeat(65)])
      await expect(phone.dial(number, { audio: {} })).rejects.toMatchObject({ code: 'SIP_BAD_NUMBER' });
    for (const address of ['', 'a b', 'host:0', 'host:70000', '[1.2.3.4]', 'a@b', 'http://x']) {
      const other = new SipPhone({ address: here });
      await expect(other.start({ address, username: 'u', password: 'p' })).rejects.toMatchObject({
        code: 'SIP_MALFORMED',
      });
      await expect(other.dial('1', { audio: {} })).rejects.toMatchObject({ code: 'SIP_STATE' });
      await other.stop();
    }
  });
});
