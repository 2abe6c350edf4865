/** The HTTP API of a virtual node: the real one, whose requests arrive on sockets in memory. */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ActorSystem } from '@bloom/actors';
import { MediaFileError, type RawRecordingStore, type RecordingStore } from '@bloom/files';
import { createHttpApi, type HttpApi, HttpError, type NodeControl } from '@bloom/http-api';
import { type Log, silentLog } from '@bloom/log';
import { Metrics } from '@bloom/metrics';
import { Passes, type RoomRouter, type RoomService } from '@bloom/rooms';

const API_TOKEN = 'a token of the simulation';
const PASSES_SECRET = 'a secret of the simulation';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With the query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** 20 to 200 characters. */
  readonly requestId: string;
}

export interface HttpAnswer {
  readonly status: number;
  /** Parsed JSON; otherwise the text. */
  readonly body: unknown;
}

/** The node that a face serves. */
export interface Served {
  /** Returns the rooms as they are for one request. */
  forRequest(requestId: string): RoomRouter;
  readonly control: NodeControl;
  readonly system: Pick<ActorSystem, 'note'>;
  readonly log: Pick<Log, 'error'>;
}

/**
 * Serves the rooms of one node at a time. Building the routes costs more than all requests of a history, so faces are
 * used again by the nodes of later histories.
 */
class HttpFace {
  readonly #api: HttpApi;
  #served: Served | undefined;

  constructor(metrics: Metrics) {
    const log: Log = {
      ...silentLog,
      error: (event, fields) => this.#served?.log.error(event, fields),
      child: () => log,
    };
    this.#api = createHttpApi({
      rooms: servedRooms(() => this.#served),
      passes: new Passes(PASSES_SECRET),
      recordings: NO_RECORDINGS,
      rawRecordings: NO_RAW_RECORDINGS,
      health: unasked,
      node: servedControl(() => this.#served),
      cluster: { report: unasked, placement: unasked, logs: unasked, peerStats: unasked },
      log,
      metrics,
      settings: { apiToken: API_TOKEN, publicMediaFiles: false, describe: false, version: '0.0.0' },
      publicHost: 'sim',
      onStep: ({ requestId, ...step }) => this.#served?.system.note(requestId, { where: 'http', ...step }),
    });
  }

  /** Serves this node from now on, or none. */
  serve(served: Served | undefined): void {
    this.#served = served;
  }

  /** Resolves with the answer; never if the node ends before. */
  ask({ method, path, body, requestId }: HttpRequest): Promise<HttpAnswer> {
    const socket = new MemorySocket();
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const request = new IncomingMessage(socket as unknown as Socket);
    const headers: Record<string, string> = {
      host: 'sim',
      authorization: `Bearer ${API_TOKEN}`,
      'x-request-id': requestId,
      ...(bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
    };
    Object.assign(request, {
      method,
      url: path,
      httpVersion: '1.1',
      httpVersionMajor: 1,
      httpVersionMinor: 1,
      complete: true,
      headers,
      rawHeaders: Object.entries(headers).flat(),
    });
    if (bytes !== undefined) request.push(bytes);
    request.push(null);
    const response = new ServerResponse(request);
    response.sendDate = false;
    response.assignSocket(socket as unknown as Socket);
    const answer = new Promise<HttpAnswer>((resolve) => {
      response.once('finish', () => {
        resolve({ status: response.statusCode, body: bodyOf(response, socket.text) });
        process.nextTick(() => socket.destroy());
      });
    });
    this.#api(request, response);

    return answer;
  }
}

/** Keeps what the server writes. */
class MemorySocket extends Duplex {
  readonly remoteAddress = '192.0.2.1';
  readonly bytesRead = 0;
  bytesWritten = 0;
  text = '';

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.bytesWritten += bytes.length;
    this.text += bytes.toString();
    done();
  }
}

function bodyOf(response: ServerResponse, text: string): unknown {
  const body = text.slice(text.indexOf('\r\n\r\n') + 4);
  const isJson = String(response.getHeader('content-type') ?? '').startsWith('application/json');

  return isJson ? JSON.parse(body) : body;
}

/** The rooms of the node that is served at the time. The API asks nothing of them but the rooms for each request. */
function servedRooms(served: () => Served | undefined): RoomService {
  const forRequest = (requestId: string): RoomService => nodeOf(served).forRequest(requestId);

  return { forRequest } as RoomService;
}

/** Takes the orders of operators to the node that is served at the time. */
function servedControl(served: () => Served | undefined): NodeControl {
  return {
    notReady: () => nodeOf(served).control.notReady(),
    drain: (node, deadlineMs, moveMs) => nodeOf(served).control.drain(node, deadlineMs, moveMs),
    undrain: (node) => nodeOf(served).control.undrain(node),
    moveRoom: (roomId, node) => nodeOf(served).control.moveRoom(roomId, node),
  };
}

function nodeOf(served: () => Served | undefined): Served {
  const node = served();
  if (node === undefined) throw new Error('a request has arrived at a node that has ended');

  return node;
}

/** Histories ask only for rooms, peers and drains. */
async function unasked(): Promise<never> {
  throw new HttpError(503, 'This node does not answer questions');
}

async function noFile(): Promise<never> {
  throw new MediaFileError('NOT_FOUND', 'Recording not found');
}

const NO_RECORDINGS: RecordingStore = {
  list: async () => ({ ids: [], unreachable: [] }),
  remove: noFile,
  open: noFile,
};

const NO_RAW_RECORDINGS: RawRecordingStore = {
  list: async () => ({ recordings: [], isWhole: true, unreachable: [] }),
  open: noFile,
  remove: noFile,
  mix: noFile,
  removeMix: noFile,
};

/** Faces that no node uses. */
const idle: HttpFace[] = [];
let metrics: Metrics | undefined;

/** Returns a face that serves this node, and a function that gives it back after the history. */
export function openFace(served: Served): { face: HttpFace; release: () => void } {
  metrics ??= new Metrics({ tickSeconds: 1 });
  const face = idle.pop() ?? new HttpFace(metrics);
  face.serve(served);
  const release = (): void => {
    face.serve(undefined);
    idle.push(face);
  };

  return { face, release };
}
