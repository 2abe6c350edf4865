import { createPrivateKey, X509Certificate } from 'node:crypto';
import { ConfigError } from './errors.js';

interface TlsFiles {
  keyPath: string | undefined;
  certPath: string | undefined;
  readFile: (path: string) => Buffer;
}

/** Key and certificate in PEM, and the absolute paths of their files. */
export interface TlsSettings {
  key: Buffer;
  cert: Buffer;
  keyPath: string;
  certPath: string;
}

/** Loads key and certificate. Checks that they are readable, well-formed and matching. */
export function loadTls({ keyPath, certPath, readFile }: TlsFiles): TlsSettings | null {
  if (keyPath === undefined && certPath === undefined) return null;
  if (keyPath === undefined || certPath === undefined) {
    const [set, missing] =
      keyPath === undefined ? ['JF_SSL_CERT_PATH', 'JF_SSL_KEY_PATH'] : ['JF_SSL_KEY_PATH', 'JF_SSL_CERT_PATH'];
    throw new ConfigError(
      missing,
      `${set}=${JSON.stringify(keyPath ?? certPath)} is set but ${missing} is not: both or none`,
    );
  }

  const key = readPem('JF_SSL_KEY_PATH', keyPath, readFile);
  const cert = readPem('JF_SSL_CERT_PATH', certPath, readFile);
  const keyFile = { variable: 'JF_SSL_KEY_PATH', path: keyPath, what: 'a private key' };
  const privateKey = checked(keyFile, () => createPrivateKey(key));
  const certFile = { variable: 'JF_SSL_CERT_PATH', path: certPath, what: 'a certificate' };
  const certificate = checked(certFile, () => new X509Certificate(cert));

  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ConfigError(
      'JF_SSL_KEY_PATH',
      `the key of JF_SSL_KEY_PATH=${JSON.stringify(keyPath)} does not belong to the certificate of JF_SSL_CERT_PATH=${JSON.stringify(certPath)}`,
    );
  }

  return { key, cert, keyPath, certPath };
}

interface PemFile {
  variable: string;
  path: string;
  what: string;
}

function readPem(variable: string, path: string, readFile: (path: string) => Buffer): Buffer {
  try {
    return readFile(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError(variable, `${variable}=${JSON.stringify(path)} cannot be read: ${reason}`, { cause });
  }
}

function checked<T>({ variable, path, what }: PemFile, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    // Omits the crypto library's reason, which may quote the file.
    throw new ConfigError(variable, `${variable}=${JSON.stringify(path)} is not ${what} in PEM form`, { cause });
  }
}
