import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** A self-signed ECDSA P-256 certificate, one per engine and shared by all transports. Can be structured-cloned. */
export interface DtlsCertificate {
  certPem: string;
  keyPem: string;
  /** Value of `a=fingerprint`: upper-case hex with colons. */
  fingerprint: { algorithm: 'sha-256'; value: string };
}

/** Creates a key and its certificate. Only this function loads werift: media workers receive the result. */
export async function createCertificate(): Promise<DtlsCertificate> {
  const { CipherContext, HashAlgorithm, NamedCurveAlgorithm, SignatureAlgorithm } = await import('werift');
  const { certPem, keyPem } = await CipherContext.createSelfSignedCertificateWithKey(
    { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
    NamedCurveAlgorithm.secp256r1_23,
  );
  const value = new X509Certificate(certPem).fingerprint256;
  return { certPem, keyPem, fingerprint: { algorithm: 'sha-256', value } };
}

/** The parts of a certificate needed in a handshake. */
export interface Identity {
  der: Buffer;
  key: KeyObject;
}

const identities = new WeakMap<DtlsCertificate, Identity>();

/** Returns the parsed certificate, cached because OpenSSL takes half a millisecond to read a private key. */
export function identityOf(certificate: DtlsCertificate): Identity {
  let identity = identities.get(certificate);
  if (identity === undefined) {
    identity = { der: fromPem(certificate.certPem), key: createPrivateKey(certificate.keyPem) };
    identities.set(certificate, identity);
  }
  return identity;
}

function fromPem(text: string): Buffer {
  return Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
}
