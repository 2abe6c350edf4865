import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { encodeServerMessage } from '@bloom/protocol';
import WebSocket from 'ws';
import { repository } from '../harness/processes.js';
import { CheckedApi } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';

// Three nodes start on a machine busy with other tests.
jest.setTimeout(120_000);

const configured = {
  JF_SERVER_API_TOKEN: 'api-token-6d2f1c',
  JF_SECRET_KEY_BASE: 'key-base-9a1e77',
  JF_DIST_COOKIE: 'cookie-41b0aa',
  JF_WEBHOOK_SECRET: 'hook-secret-c0ffee',
  JF_S3_ACCESS_KEY_ID: 'AKIDSTORAGE5577',
  JF_S3_SECRET_ACCESS_KEY: 's3-secret-77+/==ab',
};
const given = {
  sipPassword: 'sip-password-31',
  hlsSecret: 'hls-secret-key-88',
  hlsKeyId: 'AKIDREQUEST4242',
  recordingSecret: 'recording-secret-99',
  urlPassword: 'url-password-12',
  urlToken: 'url-token-34',
  wrongToken: 'wrong-token-56',
  metadata: 'metadata-of-a-client-78',
  strangersCookie: 'cookie-of-a-stranger-90',
};

describe.each(['false', 'true'])('with structured logging %s', (structured) => {
  /** A cluster of two nodes, and a node with another cookie. */
  let node: Node;
  let other: Node;
  let stranger: Node;
  let mapper: ChildProcess;
  const secrets = new Map<string, string>([...Object.entries(configured), ...Object.entries(given)]);

  beforeAll(async () => {
    const mapperPort = String(await freeTcpPort());
    const program = join(repository, 'apps', 'port-mapper', 'dist', 'main.js');
    mapper = spawn(process.execPath, [program], { env: { ERL_EPMD_PORT: mapperPort }, stdio: 'ignore' });
    const env = (name: string) => ({
      ...configured,
      JF_DIST_ENABLED: 'true',
      JF_DIST_MODE: 'name',
      JF_DIST_NODE_NAME: `${name}@127.0.0.1`,
      JF_DIST_NODES: 'one@127.0.0.1 two@127.0.0.1 missing@127.0.0.1',
      JF_DIST_IP: '127.0.0.1',
      ERL_EPMD_PORT: mapperPort,
      JF_S3_BUCKET: 'bucket',
      JF_S3_REGION: 'region',
      JF_SIP_USED: 'true',
      JF_SIP_IP: '127.0.0.1',
      JF_LOG_LEVEL: 'debug',
      JF_STRUCTURED_LOGGING: structured,
      JF_DRAIN_TIMEOUT: '1',
    });
    node = await startProgram(env('one'));
    other = await startProgram(env('two'));
    stranger = await startProgram({ ...env('three'), JF_DIST_COOKIE: given.strangersCookie });
    await node.says(/connected to :\\?"two@127/);
    await stranger.says(/unable to connect to :\\?"one@127/);
    await node.says('bad_cookie');
  });
  afterAll(async () => {
    await Promise.all([node, other, stranger].map((one) => one?.dispose()));
    mapper?.kill();
  });

  test('never prints a secret from the configuration, a request or a client', async () => {
    // All requests go to the node that does not own the room; the other one carries them out.
    const api = new CheckedApi(other.url, configured.JF_SERVER_API_TOKEN);
    const webhookUrl = `http://user:${given.urlPassword}@127.0.0.1:9/hook?token=${given.urlToken}`;
    let room = '';
    while (
      !(await new CheckedApi(node.url, configured.JF_SERVER_API_TOKEN).call('GET', '/room')).text.includes('url-')
    ) {
      room = await api.room({ videoCodec: 'h264', webhookUrl });
    }

    await everyComponent(api, room);
    const authorization = `Bearer ${given.wrongToken}`;
    expect((await api.with({ authorization }).call('GET', '/room')).status).toBe(401);
    expect((await api.call('GET', `/room?token=${given.urlToken}`)).status).toBe(200);
    expect((await api.call('GET', `/nowhere?token=${given.urlToken}`)).status).toBe(404);
    const broken = `{"type":"sip","password":"${given.sipPassword}"`;
    const json = { 'content-type': 'application/json' };
    expect((await api.raw('POST', `/room/${room}/component`, { headers: json, body: broken })).status).toBe(400);

    await sockets(api, room);
    for (const one of [node, other, stranger]) one.child.kill('SIGTERM');
    for (const one of [node, other, stranger]) expect(await one.exited).toBe(0);

    const output = [node, other, stranger].map((one) => one.output()).join('\n');
    expect(output).toMatch(structured === 'true' ? /"severity":"debug"/ : /\[debug\]/);
    expect(output).toContain('/hook');
    for (const [name, secret] of secrets) {
      for (const shape of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]) {
        expect([name, output.includes(shape)]).toEqual([name, false]);
      }
    }
  });

  async function everyComponent(api: CheckedApi, room: string): Promise<void> {
    const s3 = { accessKeyId: given.hlsKeyId, secretAccessKey: given.hlsSecret, region: 'r', bucket: 'b' };
    const credentials = { address: '127.0.0.1:9', username: 'u', password: given.sipPassword };
    for (const body of [
      { type: 'sip', options: { registrarCredentials: credentials } },
      { type: 'sip', options: { registrarCredentials: { ...credentials, username: 5 } } },
      { type: 'sip', options: { registrarCredentials: { password: given.sipPassword } } },
      { type: 'hls', options: { s3 } },
      { type: 'hls', options: { s3: { ...s3, bucket: 7 } } },
      { type: 'hls', options: { s3: given.hlsSecret } },
      { type: 'recording', options: { credentials: { ...s3, secretAccessKey: given.recordingSecret } } },
      { type: 'file', options: { filePath: `../${given.sipPassword}` } },
      { type: given.sipPassword },
    ]) {
      const { status, text } = await api.call('POST', `/room/${room}/component`, body);
      expect([body.type, status < 500]).toEqual([body.type, true]);
      expect(text).not.toContain(configured.JF_S3_SECRET_ACCESS_KEY);
      expect(text).not.toContain(given.hlsSecret);
    }
  }

  async function sockets(api: CheckedApi, room: string): Promise<void> {
    const peer = await api.peer(room);
    secrets.set('peer token', peer.token);
    const client = await PeerConnection.joined(other.url, peer.token, { about: given.metadata });
    client.send({ type: 'custom', data: { type: 'renegotiateTracks' } });
    const offer = await client.next('custom');
    for (const { password } of offer.data.data.integratedTurnServers) secrets.set('relay password', password);
    client.send({ type: `nonsense ${given.metadata}` });
    client.socket.send(given.metadata);
    client.token(peer.token);

    const refused = await PeerConnection.open(other.url);
    refused.token(`${peer.token}x`);
    await refused.closed;

    const server = new WebSocket(`${other.url.replace('http', 'ws')}/socket/server/websocket?token=${given.urlToken}`);
    const closed = new Promise((resolve) => server.once('close', resolve));
    server.once('open', () => server.send(encodeServerMessage({ type: 'authRequest', token: given.wrongToken })));
    await closed;
    client.socket.terminate();
    await delay(50);
    await api.call('DELETE', `/room/${room}`);
  }
});
