import { randomBytes } from 'node:crypto';
import { type Challenge, chooseChallenge, type Credentials, DigestClient } from '@bloom/sip';
import { ComponentError } from '../../errors.js';
import { parseSourceUri, type SourceUri } from '../source-uri.js';
import { fieldOf, type RtspMessage } from './rtsp-splitter.js';

export interface DialogActions {
  toClient(message: RtspMessage): void;
  toCamera(message: RtspMessage): void;
  /** Ends the connection to the camera; later messages go to the new address. */
  moveTo(target: SourceUri): void;
  /** Opens ports for one stream of RTP over UDP. Resolves with the first port, or undefined when none is available. */
  openPorts(clientPort: number): Promise<number | undefined>;
  /** Called when the camera has accepted the stream on that port and will send it from `serverPort`. */
  agree(port: number, serverPort: number | undefined): void;
}

interface Request {
  method: string;
  message: RtspMessage;
  clientSequence: string;
  clientPort: number | undefined;
  /** Port given to the camera for RTP over UDP. */
  port: number | undefined;
}

interface Content {
  fields?: [string, string][];
  body?: Buffer;
}

const NO_BYTES = Buffer.alloc(0);
const MAX_REDIRECTS = 4;
/** Limit for unanswered requests: one, plus those that keep the session alive. */
const MAX_WAITING = 16;
/** Response fields the native library needs. It treats some server names specially, so no others are passed on. */
const PASSED = new Set(['content-base', 'content-type', 'content-length', 'public', 'range', 'rtp-info', 'session']);
const REQUEST = /^([A-Z_]+) (\S+) RTSP\/1\.0$/;
const RESPONSE = /^RTSP\/1\.\d (\d{3}) ?(.*)$/;

/**
 * Sits between the native library and a camera, and decides what either may ask of the other: the login goes only to
 * the address it was given for, media comes only from the camera, and a redirect may lead only to another camera. Uses
 * no sockets itself.
 */
export class GateDialog {
  readonly #actions: DialogActions;
  /** Address by which the native library knows the camera. */
  readonly #alias: string;
  readonly #given: SourceUri;
  #target: SourceUri;
  #login: Login | undefined;
  #redirects = 0;
  #sequence = 0;
  readonly #waiting = new Map<string, Request>();
  /** Id of the session at the camera, while it has one. */
  #session: string | undefined;

  constructor(given: SourceUri, alias: string, actions: DialogActions) {
    this.#given = given;
    this.#target = given;
    this.#alias = alias;
    this.#actions = actions;
    this.#login = given.login && new Login(given.login);
  }

  /** True for a message of the native library, which alone knows the alias. */
  isClient({ start }: RtspMessage): boolean {
    return REQUEST.exec(start)?.[2]?.startsWith(this.#alias) === true;
  }

  async fromClient(message: RtspMessage): Promise<void> {
    const [, method, uri] = REQUEST.exec(message.start) ?? [];
    // The native library rejects requests from a camera, which has already been answered here.
    if (method === undefined || uri === undefined) return;
    const clientSequence = fieldOf(message, 'cseq') ?? '0';
    const transport = fieldOf(message, 'transport');
    const given = /client_port=(\d{1,5})/.exec(transport ?? '')?.[1];
    const clientPort = given === undefined ? undefined : Number(given);
    const port = clientPort === undefined ? undefined : await this.#actions.openPorts(clientPort);
    const request = { method, message: { ...message, start: uri }, clientSequence, clientPort, port };
    if (clientPort !== undefined && port === undefined) this.#answer(request, '461 Unsupported Transport');
    else this.#send(request);
  }

  /** @throws ComponentError `BAD_RTSP` when it is not an RTSP message */
  fromCamera(message: RtspMessage): void {
    const [, status, reason = ''] = RESPONSE.exec(message.start) ?? [];
    if (status === undefined) return this.#refuse(message);
    const sequence = fieldOf(message, 'cseq') ?? '';
    const known = this.#waiting.has(sequence) ? sequence : this.#waiting.keys().next().value;
    const request = known === undefined ? undefined : this.#waiting.get(known);
    if (known === undefined || request === undefined) return;
    this.#waiting.delete(known);
    if (status === '401') {
      const challenges = message.fields.filter(([name]) => name === 'www-authenticate').map(([, value]) => value);
      if (this.#login?.challenge(challenges) === true) return this.#send(request);
    } else {
      this.#login?.accepted();
    }
    if (request.method === 'SETUP' && status === '200') this.#session = fieldOf(message, 'session')?.split(';', 1)[0];
    const location = fieldOf(message, 'location');
    if (
      status.startsWith('3') &&
      location !== undefined &&
      (request.method === 'DESCRIBE' || request.method === 'OPTIONS')
    )
      return this.#redirect(request, location);
    const fields = this.#passed(message, request, status === '200');
    this.#answer(request, `${status} ${reason}`, { fields, body: message.body });
  }

  /** Ends the session that the native library has left open: cameras have few. Idempotent. */
  leave(): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    const uri = this.#target.request;
    const fields: [string, string][] = [
      ['CSeq', String(++this.#sequence)],
      ['Session', session],
    ];
    const authorization = this.#login?.authorization('TEARDOWN', uri);
    if (authorization !== undefined) fields.push(['Authorization', authorization]);
    this.#actions.toCamera({ start: `TEARDOWN ${uri} RTSP/1.0`, fields, body: Buffer.alloc(0) });
  }

  #send(request: Request): void {
    const { method, message, port } = request;
    const uri = message.start.startsWith(this.#alias)
      ? this.#target.request + message.start.slice(this.#alias.length)
      : message.start;
    const sequence = String(++this.#sequence);
    this.#waiting.set(sequence, request);
    if (method === 'TEARDOWN') this.#session = undefined;
    if (this.#waiting.size > MAX_WAITING) this.#waiting.delete(this.#waiting.keys().next().value!);
    const fields = message.fields.flatMap(([name, value]): [string, string][] => {
      if (name === 'cseq') return [['CSeq', sequence]];
      if (name === 'transport' && port !== undefined) return [['Transport', withPorts(value, port)]];

      return name === 'authorization' ? [] : [[name, value]];
    });
    const authorization = this.#login?.authorization(method, uri);
    if (authorization !== undefined) fields.push(['Authorization', authorization]);
    this.#actions.toCamera({ start: `${method} ${uri} RTSP/1.0`, fields, body: message.body });
  }

  #answer(request: Request, status: string, { fields = [], body = NO_BYTES }: Content = {}): void {
    const numbered: [string, string][] = [['CSeq', request.clientSequence], ...fields];
    this.#actions.toClient({ start: `RTSP/1.0 ${status}`, fields: numbered, body });
  }

  #passed(message: RtspMessage, { clientPort, port }: Request, isSuccess: boolean): [string, string][] {
    const fields = message.fields.filter(([name]) => PASSED.has(name));
    const transport = fieldOf(message, 'transport');
    if (transport === undefined) return fields;
    if (clientPort === undefined || port === undefined) {
      const [channels] = /interleaved=\d{1,3}(?:-\d{1,3})?/.exec(transport) ?? [];

      return [...fields, ['Transport', ['RTP/AVP/TCP;unicast', channels].filter(Boolean).join(';')]];
    }
    // The camera may name other hosts as source and destination of its media; both are ignored.
    const serverPort = Number(/server_port=(\d{1,5})/.exec(transport)?.[1] ?? 0);
    if (isSuccess) this.#actions.agree(port, serverPort > 0 && serverPort < 65_535 ? serverPort : undefined);
    const agreed = `client_port=${clientPort}-${clientPort + 1};server_port=${port}-${port + 1}`;

    return [...fields, ['Transport', `RTP/AVP;unicast;${agreed}`]];
  }

  #redirect(request: Request, location: string): void {
    this.#redirects += 1;
    const target = parseSourceUri(location);
    if (target?.scheme !== this.#given.scheme || this.#redirects > MAX_REDIRECTS) {
      throw new ComponentError(
        'BAD_RTSP',
        `it redirects ${target === undefined ? 'without naming a camera' : 'too often'}`,
      );
    }
    this.#target = target;
    // As in curl and browsers, another port is another receiver.
    const isSame = target.host === this.#given.host && target.port === this.#given.port;
    this.#login = isSame && this.#given.login !== undefined ? new Login(this.#given.login) : undefined;
    this.#waiting.clear();
    this.#actions.moveTo(target);
    this.#send(request);
  }

  /** Answers a request from the camera. Some cameras ask whether the receiver is still alive. */
  #refuse(message: RtspMessage): void {
    const [, method] = REQUEST.exec(message.start) ?? [];
    if (method === undefined) throw new ComponentError('BAD_RTSP', 'it does not speak RTSP');
    const isPing = method === 'OPTIONS' || method === 'GET_PARAMETER';
    const fields: [string, string][] = [['CSeq', fieldOf(message, 'cseq') ?? '0']];
    this.#actions.toCamera({
      start: `RTSP/1.0 ${isPing ? '200 OK' : '501 Not Implemented'}`,
      fields,
      body: Buffer.alloc(0),
    });
  }
}

function withPorts(transport: string, port: number): string {
  return transport.replace(/client_port=[\d-]+/, `client_port=${port}-${port + 1}`);
}

/** Answers one camera's challenges, with digest where possible. */
class Login {
  readonly #credentials: Credentials;
  readonly #digest: DigestClient;
  #basic = false;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
    this.#digest = new DigestClient(credentials, () => randomBytes(8).toString('hex'));
  }

  /** Returns false when another attempt is pointless. */
  challenge(challenges: readonly string[]): boolean {
    const digest: Challenge | undefined = chooseChallenge(challenges);
    if (digest !== undefined) return this.#digest.challenge(digest);
    if (this.#basic || !challenges.some((challenge) => /^\s*basic\b/i.test(challenge))) return false;
    this.#basic = true;

    return true;
  }

  accepted(): void {
    this.#digest.accepted();
  }

  authorization(method: string, uri: string): string | undefined {
    const { username, password } = this.#credentials;
    if (this.#basic) return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

    return this.#digest.authorization(method, uri);
  }
}
