/** A loopback SIP provider that responds as configured and never asks for a password. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { SipHeaders, type SipRequest, type SipResponse, SipTransport } from '@bloom/sip/testing';

const here = '127.0.0.1';

export class TestProvider {
  readonly requests: SipRequest[] = [];
  /** Final responses to REGISTER and INVITE; 0 = none. */
  registers = 200;
  answers = 200;
  /** Echoes received RTP. */
  echoes = true;
  /** Number of RTP packets received. */
  heard = 0;
  #transport!: SipTransport;
  #rtp!: Socket;

  static async open(): Promise<TestProvider> {
    const provider = new TestProvider();
    provider.#rtp = createSocket('udp4');
    provider.#rtp.on('message', (data, from) => {
      provider.heard += 1;
      if (provider.echoes) provider.#rtp.send(data, from.port, from.address);
    });
    provider.#rtp.bind(0, here);
    await once(provider.#rtp, 'listening');
    provider.#transport = await SipTransport.open({
      address: here,
      onMessage: (message, source) => {
        if (message.kind !== 'request') return;
        provider.requests.push(message);
        const answer = provider.#answer(message);
        if (answer !== undefined) provider.#transport.send(answer, source);
      },
      onFailure: () => {},
    });
    return provider;
  }

  get address(): string {
    return `${here}:${this.#transport.port}`;
  }

  /** Methods in order; `REGISTER 0` stands for unregistering. */
  titles(): string[] {
    return this.requests.map(({ method, headers }) => (headers.get('Expires') === '0' ? `${method} 0` : method));
  }

  async close(): Promise<void> {
    this.#rtp.close();
    await this.#transport.close();
  }

  #answer(request: SipRequest): SipResponse | undefined {
    const { method } = request;
    const status = method === 'REGISTER' ? this.registers : method === 'INVITE' ? this.answers : 200;
    if (method === 'ACK' || status === 0) return undefined;
    const headers = new SipHeaders();
    for (const name of ['Via', 'From', 'Call-ID', 'CSeq']) headers.set(name, ...request.headers.all(name));
    const to = request.headers.get('To') ?? '';
    headers.set('To', to.includes(';tag=') ? to : `${to};tag=provider`);
    headers.set('Contact', method === 'REGISTER' ? (request.headers.get('Contact') ?? '') : `<sip:p@${this.address}>`);
    const sdp = `v=0\r\no=- 1 1 IN IP4 ${here}\r\ns=-\r\nc=IN IP4 ${here}\r\nt=0 0\r\nm=audio ${this.#rtp.address().port} RTP/AVP 8\r\n`;
    const body = Buffer.from(method === 'INVITE' && status === 200 ? sdp : '');
    if (body.length > 0) headers.set('Content-Type', 'application/sdp');
    return { kind: 'response', status, reason: status === 200 ? 'OK' : 'Not Today', headers, body };
  }
}
