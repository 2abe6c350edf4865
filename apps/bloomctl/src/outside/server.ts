import { LayerFailure } from '../reach/findings.js';
import { EXIT, Failure } from '../exit.js';
import { span } from '../text/units.js';

/** Longer than any answer read here. */
const MAX_ANSWER_BYTES = 100_000;

export interface Answer {
  readonly status: number;
  /** The object of the body; empty for anything else. */
  readonly json: Readonly<Record<string, unknown>>;
  /** The `data` of a success. */
  readonly data: unknown;
  /** The `errors` of a failure. */
  readonly error: string | undefined;
}

interface Call {
  readonly token?: string;
  readonly body?: object;
}

/** @throws Failure */
export function serverUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new Failure(EXIT.usage, `${JSON.stringify(text)} is not the address of a server`, {
      advice: 'write https://media.example.com, or http://127.0.0.1:5002',
    });
  }
  if (url.username !== '' || url.password !== '') {
    throw new Failure(EXIT.usage, 'an address cannot carry a token: every user of this machine can read it');
  }
  url.hash = '';
  url.search = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';

  return url;
}

/** A deployment, asked over its HTTP API from outside. */
export class Server {
  readonly url: URL;
  readonly #timeoutMs: number;

  constructor(url: URL, timeoutMs: number) {
    this.url = url;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends a request. @throws LayerFailure when there is no answer, or not one of this server */
  async call(method: string, path: string, { token, body }: Call = {}): Promise<Answer> {
    const url = new URL(path.replace(/^\//, ''), this.url);
    try {
      const response = await fetch(url, {
        method,
        redirect: 'error',
        signal: AbortSignal.timeout(this.#timeoutMs),
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const json = parse(await textOf(response, MAX_ANSWER_BYTES));
      const { data, errors } = json;

      return { status: response.status, json, data, error: typeof errors === 'string' ? errors : undefined };
    } catch (error) {
      throw unanswered(error, this.url, this.#timeoutMs);
    }
  }

  /** Address of the websockets of peers, on the host that the server names. */
  websocket(host: string | undefined): string {
    const scheme = this.url.protocol === 'https:' ? 'wss:' : 'ws:';
    if (host !== undefined) return `${scheme}//${host}`;

    return `${scheme}//${this.url.host}${this.url.pathname}socket/peer/websocket`;
  }
}

/** Reads the start of a body, however long it is. */
export async function textOf({ body }: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes > maxBytes) break;
  }

  return Buffer.concat(chunks).toString();
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Explains why a request or a websocket had no answer. */
export function unanswered(error: unknown, { host, protocol }: URL, timeoutMs: number): LayerFailure {
  const { code, message } = causeOf(error);
  if (/^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code)) {
    return new LayerFailure({
      exit: EXIT.unreachable,
      text: `${host}: ${message}`,
      message: `No browser accepts the certificate of ${host}: ${message}.`,
      fix: 'Renew it, with the name in this address and the whole chain of its issuers. NODE_EXTRA_CA_CERTS names a certificate authority of your own.',
    });
  }
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new LayerFailure({
        exit: EXIT.unreachable,
        text: `${host} has no address`,
        message: `The name ${host} has no address here.`,
        fix: 'Check the spelling, and the record of this name in DNS.',
      });
    case 'ECONNREFUSED':
      return new LayerFailure({
        exit: EXIT.unreachable,
        text: `${host} refuses connections`,
        message: `Nothing listens at ${host}.`,
        fix: 'Check that the node or its proxy runs there, and JF_IP and JF_PORT.',
      });
    case 'TimeoutError':
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return new LayerFailure({
        exit: EXIT.timeout,
        text: `${host}: no answer within ${span(timeoutMs)}`,
        message: `${host} does not answer.`,
        fix: 'A firewall drops the packets, or the program behind the port is frozen; --timeout waits longer.',
      });
    default:
      return new LayerFailure({
        exit: EXIT.unreachable,
        text: `${host}: ${code === '' ? message : code}`,
        message: `What listens at ${host} does not answer as an HTTP server.`,
        fix: `Check the port, and whether it expects ${protocol === 'https:' ? 'http' : 'https'} instead.`,
      });
  }
}

/**
 * Finds the system's reason, which `fetch` hides one level down; several addresses fail as one. Avoids `instanceof`:
 * under test runners that isolate modules, errors of `fetch` belong to another realm.
 */
function causeOf(error: unknown): { code: string; message: string } {
  const { name, cause, errors, code, message } = (error ?? {}) as Record<string, unknown>;
  if (name === 'TimeoutError') return { code: 'TimeoutError', message: String(message) };
  if (Array.isArray(errors) && errors.length > 0) return causeOf(errors[0]);
  if (cause !== undefined && cause !== null) return causeOf(cause);

  return { code: typeof code === 'string' ? code : '', message: String(message ?? error) };
}
