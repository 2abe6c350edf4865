// One server over its HTTP API. Whatever listens there may answer without end, or with anything: answers are bounded,
// take only so long, and are read by their shape before they are shown.
import { FAILED, Reading, type Shape } from '@bloom/actors';
import { type BloomApiError, BloomClient } from '@bloom/server-sdk';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, Failure } from '../exit.js';
import { unanswered } from '../outside/server.js';
import type { Token } from '../outside/token.js';
import { toFailure } from '../reach/failures.js';
import { cutTo, printable } from '../text/style.js';
import { boundedFetch } from './bounded-fetch.js';
import { findTarget, NAME_A_SERVER, type Target } from './target.js';

/** More than the list of 10,000 rooms of ten people. */
const MAX_ANSWER_BYTES = 32_000_000;
const MAX_SENTENCE = 400;

interface ConnectionOptions extends Target {
  readonly timeoutMs: number;
  readonly maxAnswerBytes?: number;
}

export class Connection {
  readonly url: URL;
  readonly #client: BloomClient;
  readonly #token: Token;
  readonly #timeoutMs: number;
  readonly #isGuess: boolean;

  constructor({ url, token, isGuess = false, timeoutMs, maxAnswerBytes = MAX_ANSWER_BYTES }: ConnectionOptions) {
    this.url = url;
    this.#token = token;
    this.#timeoutMs = timeoutMs;
    this.#isGuess = isGuess;
    this.#client = new BloomClient({
      url: url.href,
      token: token.value,
      timeoutMs,
      fetch: boundedFetch(maxAnswerBytes),
    });
  }

  /** @throws Failure */
  static async open({ options, machine }: Context): Promise<Connection> {
    if (options.dump !== undefined) {
      throw new Failure(EXIT.usage, 'a dump cannot answer commands for the HTTP API', { advice: 'leave out --dump' });
    }
    return new Connection({ ...(await findTarget(options, machine)), timeoutMs: options.timeout });
  }

  /** Makes a call and returns the part of its answer that the shape knows. @throws Failure */
  async ask<T>(shape: Shape<T>, call: (client: BloomClient) => Promise<unknown>): Promise<T> {
    let answer: unknown;
    try {
      answer = await call(this.#client);
    } catch (error) {
      throw this.#failureOf(error);
    }
    const reading = new Reading('the server', () => undefined);
    const read = shape(answer, reading);
    if (read === FAILED) throw this.#notBloom(reading.fault.replace('the message', 'the answer'));

    return read;
  }

  /** Makes a call whose answer is of no interest. @throws Failure */
  async tell(call: (client: BloomClient) => Promise<unknown>): Promise<void> {
    await this.ask<void>(() => undefined, call);
  }

  /** Returns the address of a file of a recording. */
  fileUrl(room: string, part: string, file: string): string {
    try {
      return this.#client.rawRecordingUrl(room, part, file);
    } catch (error) {
      throw this.#failureOf(error);
    }
  }

  /** Compares names: under test runners that isolate modules, errors belong to another realm. */
  #failureOf(thrown: unknown): Failure {
    const { name, message, cause } = thrown as Error;
    switch (name) {
      case 'BloomApiError':
        return this.#refusal(thrown as BloomApiError);
      case 'BloomConnectionError':
        return cause instanceof Failure ? cause : this.#unreachable(cause);
      case 'TypeError':
        // The client refuses ids that would change the path, and stumbles over answers without the fields it needs.
        return message.endsWith('is not a valid id')
          ? new Failure(EXIT.usage, message)
          : this.#notBloom('it lacks the fields that every answer has');
      default:
        return toFailure(thrown);
    }
  }

  #unreachable(cause: unknown): Failure {
    const failure = toFailure(unanswered(cause, this.url, this.#timeoutMs));
    if (!this.#isGuess) return failure;

    return new Failure(failure.exit, `${failure.message}, and no server was named`, {
      advice: NAME_A_SERVER,
    });
  }

  #refusal({ status, message }: BloomApiError): Failure {
    const sentence = cutTo(printable(message), MAX_SENTENCE);
    // The client says so when the answer has no sentence of its own.
    const isBloom = !message.startsWith('the server answered ');
    if (status === 401 || status === 403) {
      const remedy = this.#isGuess
        ? `BLOOM_TOKEN goes to a named server only; ${NAME_A_SERVER}`
        : 'it has to be JF_SERVER_API_TOKEN of that server';
      return new Failure(EXIT.rights, `${this.url.host} refuses the token (${status}): ${sentence}`, {
        advice: `it came from ${this.#token.source}; ${remedy}`,
      });
    }
    if (!isBloom && status < 500) return this.#notBloom(sentence);
    const advice = ADVICE[status];

    return new Failure(
      EXITS[status] ?? (status >= 500 ? EXIT.fault : EXIT.usage),
      sentence,
      advice === undefined ? {} : { advice },
    );
  }

  #notBloom(why: string): Failure {
    return new Failure(EXIT.unreachable, `${this.url.href} does not answer like this API: ${why}`, {
      advice: 'check the address and its path; the server may also run an older release',
    });
  }
}

const EXITS: Readonly<Record<number, ExitCode>> = {
  404: EXIT.unknown,
  409: EXIT.timeout,
  410: EXIT.unknown,
  429: EXIT.timeout,
  502: EXIT.unreachable,
  503: EXIT.timeout,
  504: EXIT.timeout,
};
const ADVICE: Readonly<Record<number, string>> = {
  409: 'wait until that has ended',
  429: 'wait a minute',
  502: 'the proxy in front of the node does not reach it',
  503: 'try again, or fix what the message names',
};
