import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { loadTls, type TlsSettings } from '@bloom/config';
import { createLogger, silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { until } from '@bloom/time/testing';
import { createCertificate, type DtlsCertificate } from '@bloom/webrtc';
import { Certificate } from './certificate.js';
import { startTestNode } from './testing/test-node.js';

let folder: string;
let files: { key: string; cert: string };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tls-'));
  files = { key: join(folder, 'key'), cert: join(folder, 'cert') };
});
afterEach(() => rmSync(folder, { recursive: true }));

async function write(): Promise<DtlsCertificate> {
  const certificate = await createCertificate();
  writeFileSync(files.key, certificate.keyPem);
  writeFileSync(files.cert, certificate.certPem);
  return certificate;
}

/** Returns the fingerprint of the certificate on this port. */
async function shown(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** Starts a node with the certificate, and TURN over TLS on the returned port. */
async function withTls() {
  const turn = await freeTcpPort();
  const node = await startTestNode({
    JF_SSL_KEY_PATH: files.key,
    JF_SSL_CERT_PATH: files.cert,
    JF_WEBRTC_TURN_TLS_PORT: String(turn),
    JF_HOST: 'media.example.com',
  });
  return { node, turn };
}

test('a node presents a new certificate on its HTTPS listener and for TURN over TLS', async () => {
  const first = await write();
  const { node, turn } = await withTls();
  const ports = [node.settings.http.port, turn];
  expect(await Promise.all(ports.map(shown))).toEqual(ports.map(() => first.fingerprint.value));
  const second = await write();
  node.certificate?.reload();
  expect(await Promise.all(ports.map(shown))).toEqual(ports.map(() => second.fingerprint.value));
  await node.dispose();
});

test('a client cannot make TURN over TLS renegotiate', async () => {
  await write();
  const { node, turn } = await withTls();
  const client = connect({ port: turn, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
  await once(client, 'secureConnect');
  const repeated = new Promise((resolve) => {
    client.once('error', resolve);
    client.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error ?? 'repeated'));
  });
  const answer = await repeated;
  client.destroy();
  await node.dispose();
  expect(answer).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' });
});

function load(): TlsSettings {
  const tls = loadTls({ keyPath: files.key, certPath: files.cert, readFile: (path) => readFileSync(path) });
  if (tls === null) throw new Error('there are files');
  return tls;
}

test('a changed file is detected', async () => {
  await write();
  const certificate = new Certificate({ tls: load(), log: silentLog, pollMs: 20 });
  const { context } = certificate;
  await write();
  await until(() => certificate.context !== context);
  certificate.close();
});

test('files that do not match are not used, and a log line says why', async () => {
  await write();
  const lines: string[] = [];
  const certificate = new Certificate({ tls: load(), log: createLogger({ sink: (line) => lines.push(line) }) });
  const { context } = certificate;
  writeFileSync(files.key, (await createCertificate()).keyPem);
  certificate.reload();
  expect(certificate.context).toBe(context);
  rmSync(files.cert);
  certificate.reload();
  expect(certificate.context).toBe(context);
  expect(lines.join()).toMatch(/tls.reload_failed.*does not belong to the certificate[^]*tls.reload_failed.*ENOENT/);
  await write();
  certificate.reload();
  expect(certificate.context).not.toBe(context);
  certificate.close();
});
