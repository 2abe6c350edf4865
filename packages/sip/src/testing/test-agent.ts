import type { Account } from '../calls/dialog.js';
import type { SipMessage, SipRequest, SipResponse } from '../message.js';
import { parseMessage, writeMessage } from '../message.js';
import { responseTo } from '../transactions/transaction-layer.js';
import type { Target } from '../transport/target.js';
import { UserAgent } from '../user-agent.js';
import { ManualClock } from '@bloom/time/testing';
import type { Randomness } from '../randomness.js';

export const account: Account = {
  username: 'room',
  password: 'secret',
  domain: 'pbx.test',
  port: undefined,
  transport: undefined,
};

export interface AnswerOptions {
  reason?: string;
  /** Defaults to `peer`. */
  tag?: string;
  headers?: readonly (readonly [string, string])[];
  body?: string;
  /** Content type of the body; default application/sdp. */
  type?: string;
}

/** A user agent with a manual clock, whose network is a list of sent messages. */
export class TestAgent {
  readonly clock = new ManualClock();
  readonly sent: { message: SipMessage; target: Target }[] = [];
  readonly agent: UserAgent;
  /** Result of every lookup; undefined for a lookup that never ends. */
  targets: readonly Target[] | undefined;
  /** Unreachable targets. */
  readonly broken = new Set<string>();
  readonly lookups: string[] = [];

  constructor(transport: 'UDP' | 'TCP' = 'UDP', of: Account = account, host = '192.0.2.1') {
    this.targets = [{ transport, host: '192.0.2.10', port: 5060 }];
    this.agent = new UserAgent(
      {
        clock: this.clock,
        randomness: countedRandomness(),
        send: (message, target) => {
          // Encode and parse it, since what we write must be readable.
          this.sent.push({ message: parseMessage(writeMessage(message)), target });
          if (this.broken.has(target.host)) this.clock.setTimeout(() => this.agent.transportFailed(target), 1);
        },
        locate: (uri, done) => {
          this.lookups.push(uri.host);
          if (this.targets !== undefined) done(this.targets);
        },
        local: () => ({ host, port: 5060 }),
      },
      of,
    );
  }

  /** Removes and returns the messages sent so far. */
  take(): SipMessage[] {
    return this.sent.splice(0).map((entry) => entry.message);
  }

  /** Removes and returns the only request sent. */
  request(method: string): SipRequest {
    const messages = this.take();
    const only = messages[0];
    if (messages.length !== 1 || only?.kind !== 'request' || only.method !== method)
      throw new Error(`expected one ${method}, not ${messages.map(titleOf).join(', ') || 'nothing'}`);
    return only;
  }

  /** Removes the messages sent and returns their titles: `INVITE`, `200 BYE`. */
  titles(): string[] {
    return this.take().map(titleOf);
  }

  answer(request: SipRequest, status: number, options: AnswerOptions = {}): void {
    const toTag = status === 100 ? undefined : (options.tag ?? 'peer');
    const response = responseTo(request, { status, reason: options.reason ?? 'Because', toTag });
    for (const [name, value] of options.headers ?? []) response.headers.add(name, value);
    if (options.body !== undefined) {
      response.headers.set('Content-Type', options.type ?? 'application/sdp');
      response.body = Buffer.from(options.body);
    }
    this.receive(response);
  }

  /**
   * Receives a message from the other side, written as text with `
   * ` between lines.
   */
  receiveText(text: string, source: Target = { transport: 'UDP', host: '192.0.2.10', port: 5060 }): void {
    const [head = '', body = ''] = text.split('\n\n');
    this.agent.receive(parseMessage(Buffer.from(`${head.trim().split('\n').join('\r\n')}\r\n\r\n${body}`)), source);
  }

  receive(message: SipResponse | SipRequest): void {
    const source = { transport: 'UDP', host: '192.0.2.10', port: 5060 } as const;
    this.agent.receive(parseMessage(writeMessage(message)), source);
  }
}

export function titleOf(message: SipMessage): string {
  if (message.kind === 'request') return message.method;
  return `${message.status} ${message.headers.get('CSeq')?.split(' ')[1]}`;
}

export const challenge = (nonce: string, more = ''): readonly [string, string] => [
  'WWW-Authenticate',
  `Digest realm="pbx.test", nonce="${nonce}", qop="auth"${more}`,
];

const connection = (address = '192.0.2.20') => `IN ${address.includes(':') ? 'IP6' : 'IP4'} ${address}`;

export const sdpAnswer = (options: { direction?: string; port?: number; formats?: string; address?: string } = {}) =>
  `v=0\r\no=- 1 1 IN IP4 192.0.2.20\r\ns=-\r\nc=${connection(options.address)}\r\nt=0 0\r\nm=audio ${options.port ?? 4000} RTP/AVP ${options.formats ?? '0'}\r\na=${options.direction ?? 'sendrecv'}\r\n`;

/** Returns a source of numbered tokens and of numbers in the middle of their range. */
export function countedRandomness(): Randomness {
  let count = 0;
  return {
    token: () => `t${++count}`,
    below: (below) => Math.floor(below / 2),
  };
}
