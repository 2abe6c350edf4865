import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** A self-signed ECDSA P-256 certificate; made once per engine and shared by all transports. Survives structured clone. */
export interface DtlsCertificate {
  certPem: string;
  keyPem: string;
  /** Value of `a=fingerprint`: upper-case hex with colons. */
  fingerprint: { algorithm: 'sha-256'; value: string };
}

/** A fresh key and its certificate. werift makes it, loaded for this only: media workers are handed the result. */
export async function createCertificate(): Promise<DtlsCertificate> {
  const { CipherContext, HashAlgorithm, NamedCurveAlgorithm, SignatureAlgorithm } = await import('werift');
  const { certPem, keyPem } = await CipherContext.createSelfSignedCertificateWithKey(
    { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
    NamedCurveAlgorithm.secp256r1_23,
  );
  const value = new X509Certificate(certPem).fingerprint256;
  return { certPem, keyPem, fingerprint: { algorithm: 'sha-256', value } };
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

function fromPem(text: string): Buffer {
  return Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
}
