import { X509Certificate } from 'node:crypto';
import { CipherContext, HashAlgorithm, NamedCurveAlgorithm, SignatureAlgorithm } from 'werift';

/** A self-signed ECDSA P-256 certificate; made once per engine and shared by all transports. Survives structured clone. */
export interface DtlsCertificate {
  certPem: string;
  keyPem: string;
  /** Value of `a=fingerprint`: upper-case hex with colons. */
  fingerprint: { algorithm: 'sha-256'; value: string };
}

export const SIGNATURE_HASH = { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 } as const;

export async function createCertificate(): Promise<DtlsCertificate> {
  const { certPem, keyPem } = await CipherContext.createSelfSignedCertificateWithKey(
    SIGNATURE_HASH,
    NamedCurveAlgorithm.secp256r1_23,
  );
  const value = new X509Certificate(certPem).fingerprint256;
  return { certPem, keyPem, fingerprint: { algorithm: 'sha-256', value } };
}
