import { createHash, createPrivateKey, generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { der, Tag } from './der.js';

/** A self-signed ECDSA P-256 certificate; made once per engine and shared by all transports. Survives structured clone. */
export interface DtlsCertificate {
  certPem: string;
  keyPem: string;
  /** Value of `a=fingerprint`: upper-case hex with colons. */
  fingerprint: { algorithm: 'sha-256'; value: string };
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Clients look at the fingerprint, not at the dates; a process should not outlive its certificate all the same. */
const LIFETIME_MS = 3650 * DAY_MS;
const NAME = 'bloom';

const ECDSA_WITH_SHA256 = der(Tag.sequence, der(Tag.objectId, Buffer.from('2a8648ce3d040302', 'hex')));
const COMMON_NAME = der(Tag.objectId, Buffer.from('550403', 'hex'));

/** A fresh key and its certificate (RFC 5280 section 4.1). */
export async function createCertificate(now = new Date()): Promise<DtlsCertificate> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const serial = randomBytes(8);
  // A positive number of full length.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const name = der(Tag.sequence, der(Tag.set, der(Tag.sequence, COMMON_NAME, der(Tag.utf8String, Buffer.from(NAME)))));
  const body = der(
    Tag.sequence,
    der(Tag.context0, der(Tag.integer, Buffer.of(2))),
    der(Tag.integer, serial),
    ECDSA_WITH_SHA256,
    name,
    der(Tag.sequence, time(new Date(now.getTime() - DAY_MS)), time(new Date(now.getTime() + LIFETIME_MS))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = sign('sha256', body, privateKey);
  const certificate = der(Tag.sequence, body, ECDSA_WITH_SHA256, der(Tag.bitString, Buffer.of(0), signature));
  return {
    certPem: pem('CERTIFICATE', certificate),
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    fingerprint: { algorithm: 'sha-256', value: fingerprintOf(certificate) },
  };
}

/** What a handshake takes of a certificate. */
export interface Identity {
  der: Buffer;
  key: KeyObject;
}

const identities = new WeakMap<DtlsCertificate, Identity>();

/** Read once per certificate: OpenSSL takes half a millisecond for a private key. */
export function identityOf(certificate: DtlsCertificate): Identity {
  let identity = identities.get(certificate);
  if (identity === undefined) {
    identity = { der: fromPem(certificate.certPem), key: createPrivateKey(certificate.keyPem) };
    identities.set(certificate, identity);
  }
  return identity;
}

function fingerprintOf(certificate: Buffer): string {
  const hex = createHash('sha256').update(certificate).digest('hex').toUpperCase();
  return hex.match(/../g)!.join(':');
}

/** Years up to 2049 have two digits (RFC 5280 section 4.1.2.5). */
function time(date: Date): Buffer {
  const text = `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`;
  return date.getUTCFullYear() < 2050
    ? der(Tag.utcTime, Buffer.from(text.slice(2)))
    : der(Tag.generalizedTime, Buffer.from(text));
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g)!;
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

function fromPem(text: string): Buffer {
  return Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
}
