// Calls the HTTP API and checks every response against docs/reference/openapi.json with a third-party validator.
import { readFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from '@jest/globals';
import { repository } from '../../harness/processes.js';

type Operation = {
  readonly operationId: string;
  /** One alternative of one scheme. */
  readonly security?: readonly [Readonly<Record<string, unknown>>];
  readonly responses: Readonly<Record<string, { content?: Readonly<Record<string, { schema: object }>> }>>;
};

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: unknown;
}

export const openApi = JSON.parse(
  readFileSync(join(repository, 'docs', 'reference', 'openapi.json'), 'utf8'),
) as OpenApi;

/** Every operation of the document, with a path to things that do not exist. */
export const operations = Object.entries(openApi.paths).flatMap(([template, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    id: operation.operationId,
    method: method.toUpperCase(),
    template,
    path: template.replaceAll(/\{\w+\}/g, 'nobody'),
    scheme: Object.keys(operation.security?.[0] ?? {})[0],
  })),
);

export interface RawOptions {
  body?: string | Buffer;
  headers?: Readonly<Record<string, string | string[]>>;
  /** Default: the development profile's token. Null: no header. */
  authorization?: string | null;
}

export interface CheckedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of the node under test; the tests say what they expect
  readonly body: any;
}

export class CheckedApi {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(
    readonly url: string,
    readonly token = 'development',
  ) {
    this.#ajv.addSchema({ $id: 'api', ...openApi });
  }

  /** Sends and receives JSON. */
  call(method: string, path: string, body?: unknown): Promise<CheckedAnswer> {
    return this.with({}).call(method, path, body);
  }

  /** Returns the same API with these options in every request. */
  with(options: Omit<RawOptions, 'body'>): Pick<CheckedApi, 'call'> {
    return {
      call: (method, path, body) => {
        if (body === undefined) return this.raw(method, path, options);
        const headers = { 'content-type': 'application/json', ...options.headers };

        return this.raw(method, path, { ...options, headers, body: JSON.stringify(body) });
      },
    };
  }

  /** Sends the path unchanged. */
  async raw(method: string, path: string, options: RawOptions = {}): Promise<CheckedAnswer> {
    const authorization = options.authorization === undefined ? `Bearer ${this.token}` : options.authorization;
    const answer = await new Promise<CheckedAnswer>((resolve, reject) => {
      const outgoing = request(
        new URL(this.url),
        {
          method,
          path,
          headers: {
            ...(authorization === null ? {} : { authorization }),
            ...(options.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(options.body)) }),
            ...options.headers,
          },
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('error', reject);
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('end', () => {
            const text = Buffer.concat(chunks).toString('utf8');
            const isJson = incoming.headers['content-type'] === 'application/json; charset=utf-8';
            const { statusCode: status = 0, headers } = incoming;
            resolve({ status, headers, text, body: isJson && text !== '' ? JSON.parse(text) : undefined });
          });
        },
      );
      outgoing.on('error', reject);
      outgoing.end(options.body);
    });
    if (method !== 'HEAD') expect(this.#problems(method, path, answer)).toEqual([]);

    return answer;
  }

  async room(config: object = {}): Promise<string> {
    const { status, body } = await this.call('POST', '/room', config);
    expect(status).toBe(201);

    return body.data.room.id as string;
  }

  async peer(roomId: string): Promise<{ id: string; token: string }> {
    const { status, body } = await this.call('POST', `/room/${roomId}/peer`, { type: 'webrtc', options: {} });
    expect(status).toBe(201);

    return { id: body.data.peer.id, token: body.data.token };
  }

  #problems(method: string, path: string, answer: CheckedAnswer): string[] {
    // The framework's responses for paths outside the API.
    if (answer.status === 404 && answer.text === '{"errors":{"detail":"Not Found"}}') return [];
    if (method === 'OPTIONS') return [];
    const segments =
      path
        .split('?')[0]
        ?.replace(/(?<=.)\/$/, '')
        .split('/') ?? [];
    const found = Object.entries(openApi.paths).find(([template, methods]) => {
      const parts = template.split('/');
      return (
        methods[method.toLowerCase()] !== undefined &&
        parts.length === segments.length &&
        parts.every((part, at) => part.startsWith('{') || part === segments[at])
      );
    });
    const operation = found?.[1][method.toLowerCase()];
    if (found === undefined || operation === undefined) return [`${method} ${path} is not described`];

    const response = operation.responses[String(answer.status)];
    if (response === undefined) return [`${answer.status} of ${method} ${path} is not described: ${answer.text}`];
    if (response.content === undefined) return answer.text === '' ? [] : [`a body where none is described`];

    const type = answer.headers['content-type']?.split(';')[0] ?? '';
    if (response.content[type] === undefined) return [`${type} of ${answer.status} is not described`];
    if (type !== 'application/json') return [];

    const pointer = ['paths', found[0], method.toLowerCase(), 'responses', answer.status, 'content', type, 'schema']
      .map((part) => encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    let validate = this.#validators.get(pointer);
    if (validate === undefined) {
      validate = this.#ajv.compile({ $ref: `api#/${pointer}` });
      this.#validators.set(pointer, validate);
    }
    validate(answer.body);

    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }
}
