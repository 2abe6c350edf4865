import { numbers16, WireReader } from './wire.js';

export const Extension = {
  supportedGroups: 10,
  pointFormats: 11,
  signatureAlgorithms: 13,
  useSrtp: 14,
  extendedMasterSecret: 23,
  supportedVersions: 43,
  renegotiationInfo: 0xff01,
} as const;

// One suite, which every browser must support (RFC 8827 section 6.5).
/** SRTP_AES128_CM_HMAC_SHA1_80 (RFC 5764 section 4.1.2). */
export const SRTP_PROFILE = 1;
/** TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (RFC 5289). */
export const CIPHER_SUITE = 0xc02b;
export const NO_COMPRESSION = 0;
/** RFC 8422 section 5.4. */
export const NAMED_CURVE = 3;
/** RFC 8422 section 5.1.2. */
export const UNCOMPRESSED = 0;
export const ECDSA_SHA256 = 0x0403;
/** Signature algorithms accepted from others: SHA-256, SHA-384 and SHA-512, each with ECDSA and RSA. */
export const SIGNATURES = [0x0403, 0x0503, 0x0603, 0x0401, 0x0501, 0x0601];

/** A client's offer (RFC 5246 section 7.4.1.2, RFC 6347 section 4.2.1). Lists that it did not send are undefined. */
export interface ClientHello {
  /** 0xFEFD for DTLS 1.2; later versions have smaller numbers. */
  version: number;
  random: Buffer;
  cipherSuites: readonly number[];
  compressionMethods: readonly number[];
  /** RFC 8422 section 5.1.1. */
  groups: readonly number[] | undefined;
  /** RFC 5246 section 7.4.1.4.1: hash and signature combined in one number. */
  signatureAlgorithms: readonly number[] | undefined;
  /** RFC 5764 section 4.1.1. */
  srtpProfiles: readonly number[] | undefined;
  /** RFC 8446 section 4.2.1. */
  supportedVersions: readonly number[] | undefined;
  extendedMasterSecret: boolean;
  /** RFC 5746: true if signalled by the extension or the SCSV. */
  secureRenegotiation: boolean;
  /** RFC 8422 section 5.1.2; 0 means uncompressed. */
  pointFormats: readonly number[] | undefined;
}

const RANDOM_BYTES = 32;
/** TLS_EMPTY_RENEGOTIATION_INFO_SCSV (RFC 5746 section 3.3). */
const RENEGOTIATION_SUITE = 0x00ff;
/** An empty vector. */
const NO_RENEGOTIATION = Buffer.of(0);

/** Parses the body of a ClientHello. Returns undefined if it is malformed. */
export function readClientHello(body: Buffer): ClientHello | undefined {
  const reader = new WireReader(body);
  const version = reader.number(2);
  const random = reader.take(RANDOM_BYTES);
  reader.vector(1); // session id: sessions are never resumed
  reader.vector(1); // cookie: we never send one
  const cipherSuites = numbers16(reader.vector(2));
  const compressionMethods = [...reader.vector(1)];
  const extensions = readExtensions(reader);
  if (extensions === undefined) return undefined;
  const renegotiation = extensions.get(Extension.renegotiationInfo);
  // RFC 5746 section 3.6: only a renegotiation sends data here, and we do not support renegotiation.
  if (renegotiation !== undefined && !renegotiation.equals(NO_RENEGOTIATION)) return undefined;
  const points = extensions.get(Extension.pointFormats);

  const list = (type: number, lengthBytes: 1 | 2) => {
    const data = extensions.get(type);
    return data && numbers16(new WireReader(data).vector(lengthBytes));
  };
  return {
    version,
    random,
    cipherSuites,
    compressionMethods,
    groups: list(Extension.supportedGroups, 2),
    signatureAlgorithms: list(Extension.signatureAlgorithms, 2),
    srtpProfiles: list(Extension.useSrtp, 2),
    supportedVersions: list(Extension.supportedVersions, 1),
    extendedMasterSecret: extensions.has(Extension.extendedMasterSecret),
    secureRenegotiation: renegotiation !== undefined || cipherSuites.includes(RENEGOTIATION_SUITE),
    pointFormats: points && [...new WireReader(points).vector(1)],
  };
}

/** Reads the extensions that end a hello. Returns undefined if it is malformed. */
export function readExtensions(reader: WireReader): Map<number, Buffer> | undefined {
  const extensions = new Map<number, Buffer>();
  if (!reader.isAtEnd) {
    const list = new WireReader(reader.vector(2));
    while (!list.isAtEnd) {
      const type = list.number(2);
      const data = list.vector(2);
      // RFC 5246 section 7.4.1.4.
      if (extensions.has(type)) return undefined;
      extensions.set(type, data);
    }
    if (list.overrun) return undefined;
  }
  return reader.overrun || !reader.isAtEnd ? undefined : extensions;
}
