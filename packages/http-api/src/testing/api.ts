import { createServer, request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect } from '@jest/globals';
import { LocalRecordings, MediaFileError, type RawRecordingStore } from '@bloom/files';
import { silentLog } from '@bloom/log';
import { Passes } from '@bloom/rooms';
import { ManualClock } from '@bloom/time/testing';
import request from 'supertest';
import { createHttpApi, type HttpApiOptions } from '../app.js';
import { HttpError } from '../errors.js';
import { createOpenApiDocument } from '../openapi.js';
import { Conformance } from './conforms.js';
import { MemoryRooms } from './memory-rooms.js';

export const TOKEN = 'the-api-token';

export interface CallOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** Null = no header. */
  authorization?: string | null;
  headers?: Record<string, string>;
}

export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

const unseen = async (): Promise<never> => {
  throw new HttpError(503, 'This node does not answer questions');
};

const noRawRecordings: RawRecordingStore = {
  list: async () => ({ recordings: [], isWhole: true, unreachable: [] }),
  open: async ({ fileName }) => {
    throw new MediaFileError('NOT_FOUND', `File not found: ${fileName}`);
  },
  remove: async ({ roomId, part }) => {
    throw new MediaFileError('NOT_FOUND', `Recording ${roomId}/${part} not found`);
  },
  mix: async ({ roomId, part }) => {
    throw new MediaFileError('NOT_FOUND', `Recording ${roomId}/${part} not found`);
  },
  removeMix: async ({ roomId, part }) => {
    throw new MediaFileError('NOT_FOUND', `Recording ${roomId}/${part} has no mix`);
  },
};

const conformances = new Map<boolean, Conformance>();

/** Cached: most tests have their own API, and generating its document takes longer than all their requests. */
function conformanceOf(publicMediaFiles: boolean): Conformance {
  let conformance = conformances.get(publicMediaFiles);
  if (conformance === undefined) {
    conformance = new Conformance(createOpenApiDocument({ version: '1.2.3', publicMediaFiles }));
    conformances.set(publicMediaFiles, conformance);
  }
  return conformance;
}

/** The API on a local port, with rooms in memory. */
export class TestApi {
  readonly rooms: MemoryRooms;
  readonly clock = new ManualClock();
  readonly passes = new Passes('sixteen-letters!', this.clock);
  readonly traffic = { received: 0, sent: 0 };
  readonly #server: Server;
  readonly #conformance: Conformance;

  private constructor(options: Partial<HttpApiOptions>, tls?: { key: string; cert: string }) {
    this.rooms = options.rooms instanceof MemoryRooms ? options.rooms : new MemoryRooms();
    const settings = {
      apiToken: TOKEN,
      publicMediaFiles: false,
      describe: false,
      version: '1.2.3',
      ...options.settings,
    } as const;
    this.#conformance = conformanceOf(settings.publicMediaFiles);
    const api = createHttpApi({
      rawRecordings: noRawRecordings,
      recordings: new LocalRecordings({ directory: '/nonexistent', isLive: () => false }),
      health: () => ({
        status: 'UP',
        uptime: 12,
        version: '1.2.3',
        gitCommit: 'dev',
        distribution: { enabled: false, nodeStatus: 'DOWN', nodesInCluster: 0 },
      }),
      node: {
        notReady: () => undefined,
        drain: async () => 0,
        undrain: async () => ({ draining: false, rooms: 0 }),
        moveRoom: unseen,
      },
      cluster: { report: unseen, placement: unseen, logs: unseen, peerStats: unseen },
      log: silentLog,
      metrics: {
        quality: { httpRoute: () => () => undefined },
        httpReceived: (bytes) => {
          this.traffic.received += bytes;
        },
        httpSent: (bytes) => {
          this.traffic.sent += bytes;
        },
      },
      publicHost: this.rooms.address,
      passes: this.passes,
      clock: this.clock,
      ...options,
      rooms: this.rooms,
      settings,
    });
    this.#server = tls === undefined ? createServer(api) : createHttpsServer(tls, api);
  }

  static async open(options: Partial<HttpApiOptions> = {}, tls?: { key: string; cert: string }): Promise<TestApi> {
    const api = new TestApi(options, tls);
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', () => resolve()));

    return api;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Calls the API like an SDK; the response must conform to the OpenAPI document. */
  async call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, options: CallOptions = {}) {
    const agent = request(this.#server);
    const name = method.toLowerCase() as 'get' | 'post' | 'patch' | 'delete';
    let outgoing = agent[name](path).set(options.headers ?? {});
    const authorization = options.authorization === undefined ? `Bearer ${TOKEN}` : options.authorization;

    if (authorization !== null) outgoing = outgoing.set('authorization', authorization);
    const answer = await (options.body === undefined
      ? outgoing
      : outgoing.set('content-type', 'application/json').send(JSON.stringify(options.body)));
    const isJson = answer.type === 'application/json';

    expect(
      this.#conformance.check({
        method,
        path,
        status: answer.status,
        contentType: answer.headers['content-type'],
        body: isJson ? answer.body : answer.text,
      }),
    ).toEqual([]);

    return answer;
  }

  /** Sends a request with its path unchanged, which clients with URL parsers cannot do. */
  raw(
    method: string,
    path: string,
    options: { headers?: Record<string, string | string[]>; body?: string | Buffer } = {},
  ): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const length = options.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(options.body)) };
      const headers = { authorization: `Bearer ${TOKEN}`, ...length, ...options.headers };
      const outgoing = httpRequest({ host: '127.0.0.1', port: this.port, method, path, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks).toString() });
        });
      });
      outgoing.on('error', reject);
      outgoing.end(options.body);
    });
  }
}
