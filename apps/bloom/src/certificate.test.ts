import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { loadTls, type TlsSettings } from '@bloom/config';
import { createLogger, silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { ManualClock, until } from '@bloom/time/testing';
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
async function withTls(env: Record<string, string> = {}) {
  const turn = await freeTcpPort();
  const node = await startTestNode({
    JF_SSL_KEY_PATH: files.key,
    JF_SSL_CERT_PATH: files.cert,
    JF_WEBRTC_TURN_TLS_PORT: String(turn),
    JF_HOST: 'media.example.com',
    ...env,
  });
  return { node, turn };
}

test('presents a new certificate on the HTTPS listener and for TURN over TLS', async () => {
  const first = await write();
  const { node, turn } = await withTls();
  const ports = [node.settings.http.port, turn];
  expect(await Promise.all(ports.map(shown))).toEqual(ports.map(() => first.fingerprint.value));
  const second = await write();
  node.certificate?.reload();
  expect(await Promise.all(ports.map(shown))).toEqual(ports.map(() => second.fingerprint.value));
  await node.dispose();
});

test('lets no client make TURN over TLS renegotiate', async () => {
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

test('serves HTTPS and TURN over TLS on one port, with a new certificate for both', async () => {
  await write();
  const port = await freeTcpPort();
  const { node } = await withTls({ JF_PORT: String(port), JF_WEBRTC_TURN_TLS_PORT: String(port) });
  const at = { port, host: '127.0.0.1', rejectUnauthorized: false };
  const turn = connect(at);
  turn.write(Buffer.from('000300002112a442000000000000000000000001', 'hex'));
  const [challenge] = (await once(turn, 'data')) as [Buffer];
  // An error response to Allocate.
  expect(challenge.readUInt16BE(0)).toBe(0x0113);
  const http = connect(at);
  http.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
  const [answer] = (await once(http, 'data')) as [Buffer];
  expect(answer.toString('latin1')).toContain('HTTP/1.1 200 OK');
  const second = await write();
  node.certificate?.reload();
  expect(await shown(port)).toBe(second.fingerprint.value);
  expect([turn.destroyed, http.destroyed]).toEqual([false, false]);
  const ended = Promise.all([once(turn, 'close'), once(http, 'close')]);
  await node.dispose();
  await ended;
});

function logged() {
  const lines: string[] = [];
  return { lines, log: createLogger({ sink: (line) => lines.push(line) }) };
}

function load(): TlsSettings {
  const tls = loadTls({ keyPath: files.key, certPath: files.cert, readFile: (path) => readFileSync(path) });
  if (tls === null) throw new Error('there are files');
  return tls;
}

test('detects a changed Kubernetes secret, whose links are swapped at once', async () => {
  const version = async (name: string): Promise<DtlsCertificate> => {
    const certificate = await createCertificate();
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'key'), certificate.keyPem);
    writeFileSync(join(folder, name, 'cert'), certificate.certPem);
    symlinkSync(name, join(folder, 'new'));
    renameSync(join(folder, 'new'), join(folder, '..data'));
    return certificate;
  };
  await version('first');
  symlinkSync('..data/key', files.key);
  symlinkSync('..data/cert', files.cert);
  const { lines, log } = logged();
  const certificate = new Certificate({ tls: load(), log, pollMs: 20 });
  const changed = new Promise<TlsSettings>((resolve) => certificate.onChange(resolve));
  const second = await version('second');
  expect((await changed).cert.toString()).toBe(second.certPem);
  certificate.close();
  expect(lines.join()).toContain('tls.reloaded');
});

test('uses a pair that is written file by file once it is complete, without a warning', async () => {
  await write();
  const { lines, log } = logged();
  const clock = new ManualClock();
  const certificate = new Certificate({ tls: load(), log, pollMs: 5_000, clock });
  const { context } = certificate;
  const { keyPem, certPem } = await createCertificate();
  writeFileSync(files.cert, certPem.slice(0, 100));
  certificate.filesChanged();
  writeFileSync(files.cert, certPem);
  certificate.filesChanged();
  clock.advance(4_999);
  expect(certificate.context).toBe(context);
  writeFileSync(files.key, keyPem);
  clock.advance(1);
  expect(certificate.context).not.toBe(context);
  certificate.filesChanged();
  certificate.close();
  expect(lines).toEqual([expect.stringContaining('tls.reloaded')]);
});

test('reports files that stay wrong once, and says what to do', async () => {
  await write();
  const { lines, log } = logged();
  const clock = new ManualClock();
  const certificate = new Certificate({ tls: load(), log, pollMs: 5_000, clock });
  const { context } = certificate;
  for (let round = 0; round < 3; round += 1) {
    writeFileSync(files.key, (await createCertificate()).keyPem);
    certificate.filesChanged();
    clock.advance(5_000);
  }
  expect(certificate.context).toBe(context);
  certificate.close();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/tls\.reload_failed.*does not belong.*JF_SSL_CERT_PATH and JF_SSL_KEY_PATH/);
});

test('detects a changed file', async () => {
  await write();
  const certificate = new Certificate({ tls: load(), log: silentLog, pollMs: 20 });
  const { context } = certificate;
  await write();
  await until(() => certificate.context !== context);
  certificate.close();
});

test('does not use files that do not match, and logs the reason', async () => {
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
