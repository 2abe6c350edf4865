/** Runs OpenSSL and GnuTLS clients against our server: implementations other than werift, which the other tests use. */
import { spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createCertificate, type DtlsCertificate } from './certificate.js';
import { DtlsSession } from './dtls-session.js';
import type { SrtpKeyMaterial } from './key-schedule.js';

interface Program {
  name: string;
  command: string;
  /** Arguments that connect to a local port, offer SRTP and print the keying material. */
  connect: (port: number) => string[];
  certificate: (cert: string, key: string) => string[];
  /** Arguments that select one group, by our name for it. */
  group: Readonly<Record<'X25519' | 'P-256', string[]>>;
  /** Printed last: the program then has nothing more to read and closes the session. */
  last: string;
  material: RegExp;
  /** Output of a handshake that went as intended. */
  agreed: readonly string[];
}

const LABEL = 'EXTRACTOR-dtls_srtp';
const only = (group: string): string[] => ['--priority', `NORMAL:-VERS-ALL:+VERS-DTLS1.2:-GROUP-ALL:+GROUP-${group}`];

const PROGRAMS: readonly Program[] = [
  {
    name: 'OpenSSL',
    command: 'openssl',
    connect: (port) =>
      `s_client -dtls1_2 -connect 127.0.0.1:${port} -use_srtp SRTP_AES128_CM_SHA1_80 -keymatexport ${LABEL} -keymatexportlen 60`.split(
        ' ',
      ),
    certificate: (cert, key) => ['-cert', cert, '-key', key],
    group: { X25519: ['-groups', 'X25519:P-256'], 'P-256': ['-groups', 'P-256'] },
    last: 'Extended master secret',
    material: /Keying material: ([0-9A-F]{120})/i,
    agreed: [
      'SRTP Extension negotiated, profile=SRTP_AES128_CM_SHA1_80',
      'ECDHE-ECDSA-AES128-GCM-SHA256',
      'Extended master secret: yes',
    ],
  },
  {
    name: 'GnuTLS',
    command: 'gnutls-cli',
    connect: (port) =>
      `--udp --insecure -p ${port} 127.0.0.1 --srtp-profiles SRTP_AES128_CM_HMAC_SHA1_80 --keymatexport ${LABEL} --keymatexportsize 60`.split(
        ' ',
      ),
    certificate: (cert, key) => ['--x509certfile', cert, '--x509keyfile', key],
    group: { X25519: only('X25519'), 'P-256': only('SECP256R1') },
    last: 'Handshake was completed',
    material: /Key material: ([0-9a-f]{120})/i,
    agreed: [
      'SRTP profile: SRTP_AES128_CM_HMAC_SHA1_80',
      '(ECDSA-SHA256)-(AES-128-GCM)',
      'extended master secret, safe renegotiation',
    ],
  },
];

let folder: string;
let ours: DtlsCertificate;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-dtls-'));
  ours = await createCertificate();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a client certificate with openssl. */
function certificate(...key: string[]): { cert: string; key: string; fingerprint: string } {
  const [keyFile, certFile] = [join(folder, 'client.key'), join(folder, 'client.pem')];
  const args = ['req', '-x509', '-nodes', '-subj', '/CN=x', '-keyout', keyFile, '-out', certFile, ...key];
  expect(spawnSync('openssl', args).status).toBe(0);
  const { fingerprint256 } = new X509Certificate(readFileSync(certFile));
  return { cert: certFile, key: keyFile, fingerprint: fingerprint256 };
}

interface Outcome {
  keys: SrtpKeyMaterial | undefined;
  failure: string | undefined;
  /** Output of the program. */
  said: string;
}

interface ConnectOptions {
  args?: readonly string[];
  fingerprint: string;
  /** Numbers of our datagrams, from 1, that are lost on the way to the client. */
  lost?: readonly number[];
}

async function connect(program: Program, { args = [], fingerprint, lost = [] }: ConnectOptions): Promise<Outcome> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const client = spawn(program.command, [...program.connect(socket.address().port), ...args]);
  let peer = 0;
  let sent = 0;
  const outcome: Outcome = { keys: undefined, failure: undefined, said: '' };
  await new Promise<void>((done) => {
    const session = new DtlsSession(ours, {
      send: (datagram) => {
        if (!lost.includes(++sent)) socket.send(datagram, peer, '127.0.0.1');
      },
      onConnected: (keys) => (outcome.keys = keys),
      onFailed: (reason) => {
        outcome.failure = reason;
        client.kill();
      },
      onData: () => undefined,
      onClosed: () => done(),
    });
    session.expectFingerprint({ algorithm: 'sha-256', value: fingerprint });
    socket.on('message', (datagram, { port }) => {
      peer = port;
      session.receive(datagram, 1_000);
    });
    const hear = (chunk: Buffer) => {
      outcome.said += chunk.toString();
      if (outcome.said.includes(program.last)) client.stdin.end();
    };
    client.stdout.on('data', hear);
    client.stderr.on('data', hear);
    client.once('exit', () => done());
  });
  client.kill();
  socket.close();
  return outcome;
}

describe.each(PROGRAMS)('a handshake with $name', (program) => {
  const present = spawnSync(program.command, ['--version']).error === undefined;
  if (!present) process.stderr.write(`*** SKIPPED: there is no ${program.command} here to connect with\n`);
  const check = present ? test : test.skip;
  const p256 = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const p384 = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'];

  function expectSameKeys({ keys, failure, said }: Outcome): void {
    expect(failure).toBeUndefined();
    const { localKey, localSalt, remoteKey, remoteSalt } = keys as SrtpKeyMaterial;
    const exported = program.material.exec(said)?.[1]?.toLowerCase() ?? said;
    expect(exported).toBe(Buffer.concat([remoteKey, localKey, remoteSalt, localSalt]).toString('hex'));
    for (const line of program.agreed) expect(said).toContain(line);
  }

  check.each([
    ['X25519 and a P-256 certificate', 'X25519', p256],
    ['P-256 and a P-256 certificate', 'P-256', p256],
    ['X25519 and an RSA certificate', 'X25519', ['-newkey', 'rsa:2048']],
    ['X25519 and a P-384 certificate', 'X25519', p384],
  ] as const)('agrees on the same keys with %s [needs openssl]', async (_name, group, key) => {
    const { cert, key: keyFile, fingerprint } = certificate(...key);
    const args = [...program.certificate(cert, keyFile), ...program.group[group]];
    expectSameKeys(await connect(program, { args, fingerprint }));
  });

  // The client's one-second timer drives both.
  check.each([
    ['our first flight', [1]],
    ['our last flight', [2]],
  ] as const)('survives the loss of %s [needs openssl]', async (_name, lost) => {
    const { cert, key, fingerprint } = certificate(...p256);
    expectSameKeys(await connect(program, { args: program.certificate(cert, key), fingerprint, lost }));
  });

  check('refuses a client without a certificate', async () => {
    const { keys, failure } = await connect(program, { fingerprint: '00:11' });
    expect(keys).toBeUndefined();
    expect(failure).toBe('the client sent no DTLS certificate');
  });
});
