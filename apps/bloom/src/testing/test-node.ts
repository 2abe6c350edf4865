/** A node in this process, and its clients over real sockets. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type Settings } from '@bloom/config';
import { silentLog, type Log } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import {
  decodePeerMessage,
  decodeServerMessage,
  encodePeerMessage,
  encodeServerMessage,
  type Notification,
  type ServerMessage,
} from '@bloom/protocol';
import { WebSocket, type ClientOptions } from 'ws';
import { startNode, type NodeOptions, type RunningNode } from '../node.js';

async function testSettings(env: Record<string, string> = {}): Promise<{ settings: Settings; remove: () => void }> {
  const resources = mkdtempSync(join(tmpdir(), 'bloom-node-'));
  const { settings } = loadConfig(
    {
      NODE_ENV: 'test',
      JF_PORT: String(await freeTcpPort()),
      JF_METRICS_PORT: String(await freeTcpPort()),
      JF_WEBRTC_TURN_PORT_RANGE: '0-0',
      JF_RESOURCES_BASE_PATH: resources,
      JF_WEBRTC_METRICS_INTERVAL_MS: '50',
      ...env,
    },
    { cwd: resources, hostname: 'test-host', cores: 1, randomBytes },
  );

  return { settings, remove: () => rmSync(resources, { recursive: true, force: true }) };
}

export interface Answer {
  status: number;
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

export interface TestNode extends RunningNode {
  settings: Settings;
  request: (method: string, path: string, body?: unknown) => Promise<Answer>;
  createRoom: (body?: unknown) => Promise<string>;
  addPeer: (roomId: string) => Promise<{ id: string; token: string }>;
  peerSocket: (options?: ClientOptions) => Promise<PeerClient>;
  /** Authenticated and subscribed to notifications. */
  serverSocket: () => Promise<ServerClient>;
  dispose: () => Promise<void>;
}

export async function startTestNode(
  env: Record<string, string> = {},
  options: Partial<NodeOptions> & { log?: Log } = {},
): Promise<TestNode> {
  const { settings, remove } = await testSettings(env);
  const node = await startNode({ settings, log: silentLog, mediaInProcess: true, ...options }).catch(
    (error: unknown) => {
      remove();
      throw error;
    },
  );
  const clients: WebSocket[] = [];
  const open = async (path: string, clientOptions: ClientOptions = {}): Promise<WebSocket> => {
    const socket = new WebSocket(`${node.url.replace('http', 'ws')}${path}`, clientOptions);
    clients.push(socket);
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    return socket;
  };
  const request = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(`${node.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${settings.http.apiToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text };
  };

  return {
    ...node,
    settings,
    request,
    createRoom: async (body = {}) => (await request('POST', '/room', body)).body.data.room.id as string,
    addPeer: async (roomId) => {
      const { peer, token } = (await request('POST', `/room/${roomId}/peer`, { type: 'webrtc', options: {} })).body
        .data;
      return { id: peer.id, token };
    },
    peerSocket: async (clientOptions) => new PeerClient(await open('/socket/peer/websocket', clientOptions)),
    serverSocket: async () => {
      const client = new ServerClient(await open('/socket/server/websocket'));
      client.send({ type: 'authRequest', token: settings.http.apiToken });
      client.send({ type: 'subscribeRequest', eventType: 'serverNotification' });
      await client.until((message) => message.type === 'subscribeResponse');
      return client;
    },
    dispose: async () => {
      for (const socket of clients) socket.terminate();
      await node.close();
      remove();
    },
  };
}

/** Keeps what has arrived, and waits for what is still to come. */
class Inbox<T> {
  readonly received: T[] = [];
  #waiting: (() => void)[] = [];

  add(item: T): void {
    this.received.push(item);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async until(wanted: (item: T) => boolean): Promise<T> {
    for (;;) {
      const found = this.received.find(wanted);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

// oxlint-disable-next-line typescript/no-explicit-any
type MediaEvent = { type: string; data?: any };

class PeerClient {
  readonly closed: Promise<string>;
  readonly #inbox = new Inbox<MediaEvent>();

  constructor(readonly socket: WebSocket) {
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`));
    });
    socket.on('message', (data) => {
      const message = decodePeerMessage(data as Buffer);
      if (message.type === 'mediaEvent') this.#inbox.add(JSON.parse(message.data) as MediaEvent);
      else this.#inbox.add({ type: message.type });
    });
  }

  /** Sends the token. Resolves when it is accepted. */
  async authenticate(token: string): Promise<void> {
    this.socket.send(encodePeerMessage({ type: 'authRequest', token }));
    await this.next('authenticated');
  }

  send(event: MediaEvent): void {
    this.socket.send(encodePeerMessage({ type: 'mediaEvent', data: JSON.stringify(event) }));
  }

  next(type: string): Promise<MediaEvent> {
    return this.#inbox.until((event) => event.type === type);
  }
}

class ServerClient {
  readonly closed: Promise<number>;
  readonly #inbox = new Inbox<ServerMessage | { type: 'unknown' }>();

  constructor(readonly socket: WebSocket) {
    this.closed = new Promise((resolve) => socket.once('close', (code) => resolve(code)));
    socket.on('message', (data) => this.#inbox.add(decodeServerMessage(data as Buffer)));
  }

  send(message: ServerMessage): void {
    this.socket.send(encodeServerMessage(message));
  }

  until(wanted: (message: ServerMessage | { type: 'unknown' }) => boolean): Promise<unknown> {
    return this.#inbox.until(wanted);
  }

  /** Types of the notifications received so far. */
  get news(): string[] {
    return this.#inbox.received.map(({ type }) => type).filter((type) => !NOT_NEWS.has(type));
  }

  async untilNews(type: Notification['type']): Promise<string[]> {
    await this.until((message) => message.type === type);
    return this.news;
  }
}

const NOT_NEWS = new Set(['authenticated', 'subscribeResponse']);
