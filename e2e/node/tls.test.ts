import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { decodeServerMessage, encodeServerMessage } from '@bloom/protocol';
import WebSocket from 'ws';
import { makeCertificate, repository } from '../harness/processes.js';
import { describeWith } from '../harness/needs.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';

jest.setTimeout(30_000);

describeWith(['openssl'], 'a node with key and certificate', () => {
  let folder: string;
  let node: Node;
  let ca: Buffer;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bloom-tls-'));
    const files = makeCertificate(folder);
    ca = readFileSync(files.cert);
    node = await startProgram({ JF_SSL_KEY_PATH: files.key, JF_SSL_CERT_PATH: files.cert });
  });
  afterAll(async () => {
    await node?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of the node under test
  async function call(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
    const outgoing = request(`${node.url}${path}`, {
      ca,
      method,
      headers: { authorization: 'Bearer development', 'content-type': 'application/json' },
    });
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const [incoming] = await once(outgoing, 'response');
    const answer = await text(incoming);

    return { status: incoming.statusCode, body: answer === '' ? undefined : JSON.parse(answer) };
  }

  test('serves the API over HTTPS with a valid certificate, and nothing over HTTP', async () => {
    expect((await call('GET', '/health')).body.data.status).toBe('UP');
    await expect(fetch(`http://127.0.0.1:${node.port}/health`)).rejects.toThrow();
    await expect(once(request(`${node.url}/health`).end(), 'response')).rejects.toThrow(/self-signed/);
    expect(node.output()).toContain(`listens on https://127.0.0.1:${node.port}`);
  });

  test('is found by a second `npm start`', async () => {
    const env = { PATH: process.env['PATH'], JF_PORT: String(node.port), JF_SSL_KEY_PATH: join(folder, 'key.pem') };
    const second = spawn(process.execPath, ['scripts/start.mjs'], { cwd: repository, env, stdio: 'pipe' });
    const [[code], output] = await Promise.all([once(second, 'close'), text(second.stderr)]);
    expect(output).toContain(`Bloom is already running at https://127.0.0.1:${node.port}.`);
    expect(code).toBe(1);
  });

  test('serves a peer over WSS from its token to the end of its room', async () => {
    const { body: created } = await call('POST', '/room', {});
    const room = created.data.room.id;
    const { body: added } = await call('POST', `/room/${room}/peer`, { type: 'webrtc' });
    expect(added.data.peer_websocket_url).toBe(`127.0.0.1:${node.port}/socket/peer/websocket`);
    const client = await PeerConnection.authenticated(node.url, added.data.token, { ca });
    client.send({ type: 'connect', data: { metadata: null } });
    expect((await client.next('connected')).data.id).toBe(added.data.peer.id);
    expect((await call('DELETE', `/room/${room}`)).status).toBe(204);
    expect(await client.closed).toBe('1000 Room stopped');
  });

  test('accepts server websockets over WSS, and not over WS', async () => {
    const url = `127.0.0.1:${node.port}/socket/server/websocket`;
    const socket = new WebSocket(`wss://${url}`, { ca });
    await once(socket, 'open');
    socket.send(encodeServerMessage({ type: 'authRequest', token: 'development' }));
    const [frame] = await once(socket, 'message');
    expect(decodeServerMessage(frame as Buffer)).toEqual({ type: 'authenticated' });
    socket.terminate();
    const plain = new WebSocket(`ws://${url}`);
    const [error] = await once(plain, 'error');
    expect((error as NodeJS.ErrnoException).message).toMatch(/hang up|reset|closed/i);
  });

  test('uses a renewed certificate after SIGHUP, and keeps its connections', async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${node.port}/socket/server/websocket`, { ca });
    await once(socket, 'open');
    ca = readFileSync(makeCertificate(folder).cert);
    await expect(call('GET', '/health')).rejects.toThrow(/self-signed/);
    node.child.kill('SIGHUP');
    await node.says('tls.reloaded');
    expect((await call('GET', '/health')).status).toBe(200);
    socket.send(encodeServerMessage({ type: 'authRequest', token: 'development' }));
    await once(socket, 'message');
    socket.terminate();
  });
});
