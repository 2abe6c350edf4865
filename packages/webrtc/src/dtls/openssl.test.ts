/** OpenSSL's own client against ours: another implementation than the one of the other tests, and what it does not cover. */
import { spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createCertificate, type DtlsCertificate } from './certificate.js';
import { DtlsSession, type SrtpKeyMaterial } from './dtls-session.js';

const present = spawnSync('openssl', ['version']).status === 0;
if (!present) process.stderr.write('*** SKIPPED: there is no openssl here to connect with\n');

let folder: string;
let ours: DtlsCertificate;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-dtls-'));
  ours = await createCertificate();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A client certificate made by openssl. */
function certificate(name: string, ...key: string[]): { files: string[]; fingerprint: string } {
  const [keyFile, certFile] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    '-nodes',
    '-subj',
    '/CN=x',
    '-keyout',
    keyFile,
    '-out',
    certFile,
    ...key,
  ]);
  expect(made.status).toBe(0);
  const { fingerprint256 } = new X509Certificate(readFileSync(certFile));
  return { files: ['-cert', certFile, '-key', keyFile], fingerprint: fingerprint256 };
}

interface Outcome {
  keys: SrtpKeyMaterial | undefined;
  failure: string | undefined;
  /** What openssl printed. */
  said: string;
}

async function connect(args: readonly string[], fingerprint: string): Promise<Outcome> {
  const socket: Socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const server = `127.0.0.1:${socket.address().port}`;
  const srtp = '-use_srtp SRTP_AES128_CM_SHA1_80 -keymatexport EXTRACTOR-dtls_srtp -keymatexportlen 60'.split(' ');
  const client = spawn('openssl', ['s_client', '-dtls1_2', '-connect', server, ...srtp, ...args]);
  let said = '';
  let peer = 0;
  const outcome: Outcome = { keys: undefined, failure: undefined, said };
  await new Promise<void>((done) => {
    const session = new DtlsSession(ours, {
      send: (datagram) => socket.send(datagram, peer, '127.0.0.1'),
      onConnected: (keys) => (outcome.keys = keys),
      onFailed: (reason) => {
        outcome.failure = reason;
        client.kill();
      },
      onClosed: () => done(),
    });
    session.expectFingerprint({ algorithm: 'sha-256', value: fingerprint });
    socket.on('message', (datagram, { port }) => {
      peer = port;
      session.receive(datagram, 1_000);
    });
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      // The last it says: it says good-bye when there is nothing more to read.
      if (said.includes('Extended master secret')) client.stdin.end();
    };
    client.stdout.on('data', hear);
    client.stderr.on('data', hear);
    client.once('exit', () => done());
  });
  client.kill();
  socket.close();
  return { ...outcome, said };
}

function exported(said: string): string {
  return /Keying material: ([0-9A-F]{120})/.exec(said)?.[1]?.toLowerCase() ?? said;
}

(present ? describe : describe.skip)('a handshake with OpenSSL [needs openssl]', () => {
  const p256 = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];

  test.each([
    ['X25519 and a P-256 certificate', ['-groups', 'X25519:P-256'], p256],
    ['P-256 and a P-256 certificate', ['-groups', 'P-256'], p256],
    ['X25519 and an RSA certificate', ['-groups', 'P-384:X25519:P-256'], ['-newkey', 'rsa:2048']],
    [
      'X25519 and a P-384 certificate',
      ['-groups', 'X25519:P-256'],
      ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
    ],
  ])('by %s ends with the same keys', async (name, args, key) => {
    const theirs = certificate(name.replaceAll(/\W/g, '-'), ...key);
    const { keys, failure, said } = await connect([...theirs.files, ...args], theirs.fingerprint);
    expect(failure).toBeUndefined();
    const { localKey, localSalt, remoteKey, remoteSalt } = keys as SrtpKeyMaterial;
    expect(exported(said)).toBe(Buffer.concat([remoteKey, localKey, remoteSalt, localSalt]).toString('hex'));
    expect(said).toContain('SRTP Extension negotiated, profile=SRTP_AES128_CM_SHA1_80');
    expect(said).toContain('ECDHE-ECDSA-AES128-GCM-SHA256');
    expect(said).toContain('Extended master secret: yes');
  });

  test('without a certificate of the client is refused', async () => {
    const { keys, failure } = await connect([], '00:11');
    expect([keys, failure]).toEqual([undefined, 'the client sent no DTLS certificate']);
  });
});
