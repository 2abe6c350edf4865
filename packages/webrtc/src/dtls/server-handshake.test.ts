import { beforeAll, expect, test } from '@jest/globals';
import { createCertificate, type Identity, identityOf } from './certificate.js';
import { handshakeMessage, HandshakeType } from './handshake-messages.js';
import { RecordLayer } from './record-layer.js';
import { ServerHandshake } from './server-handshake.js';
import { u16, u8, vector } from './wire.js';

let identity: Identity;
beforeAll(async () => {
  identity = identityOf(await createCertificate());
});

/** A valid hello, except for the given parts. */
function hello({
  version = 0xfefd,
  suites = u16(0xc02b),
  compression = u8(0),
  groups = u16(29, 23),
  points = u8(0),
  signatures = u16(0x0403),
  profiles = u16(1),
  more = [] as readonly Buffer[],
}): Buffer {
  const extension = (type: number, ...data: readonly Buffer[]) => Buffer.concat([u16(type), vector(2, ...data)]);
  const extensions = [
    extension(10, vector(2, groups)),
    extension(11, vector(1, points)),
    extension(13, vector(2, signatures)),
    extension(14, vector(2, profiles), vector(1)),
    ...more,
  ];
  const head = [u16(version), Buffer.alloc(32, 7), vector(1), vector(1)];
  const body = [...head, vector(2, suites), vector(1, compression), vector(2, ...extensions)];

  return handshakeMessage(HandshakeType.clientHello, 0, ...body);
}

test('answers a hello that offers everything required with five messages', () => {
  expect(new ServerHandshake(identity, new RecordLayer()).begin(hello({}))).toHaveLength(5);
});

test.each([
  ['DTLS 1.0', { version: 0xfeff }, 'DTLS 1.2'],
  ['later versions only', { more: [u16(43), vector(2, vector(1, u16(0xfefc)))] }, 'DTLS 1.2'],
  ['other cipher suites', { suites: u16(0xc02c, 0xc02f) }, 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'],
  ['compression', { compression: u8(1) }, 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'],
  ['other groups', { groups: u16(24, 25) }, 'neither X25519 nor P-256'],
  ['compressed points only', { points: u8(1) }, 'uncompressed points'],
  ['other signatures', { signatures: u16(0x0401, 0x0203) }, 'ECDSA with SHA-256'],
  ['other SRTP profiles', { profiles: u16(7, 2) }, 'SRTP_AES128_CM_HMAC_SHA1_80'],
])('refuses a hello with %s and gives the reason', (_name, offered, reason) => {
  expect(new ServerHandshake(identity, new RecordLayer()).begin(hello(offered))).toContain(reason);
});
