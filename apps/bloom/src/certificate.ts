/** The certificate of the HTTPS listener and of TURN over TLS. */
import { constants, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { loadTls, type TlsSettings } from '@bloom/config';
import type { Log } from '@bloom/log';

/** Interval for comparing the files' times, which also detects replaced links, as Kubernetes and certbot use them. */
const POLL_MS = 5_000;

export interface CertificateOptions {
  tls: TlsSettings;
  log: Log;
  pollMs?: number;
}

/** Reloads the certificate when its files change or on request. Open connections keep the old one. */
export class Certificate {
  readonly #options: CertificateOptions;
  readonly #listeners: ((tls: TlsSettings) => void)[] = [];
  #tls: TlsSettings;
  #context: SecureContext;
  readonly #changed = (): void => this.reload();

  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#tls = options.tls;
    this.#context = contextOf(options.tls);
    const { keyPath, certPath } = options.tls;
    for (const path of [keyPath, certPath]) {
      watchFile(path, { interval: options.pollMs ?? POLL_MS, persistent: false }, this.#changed);
    }
  }

  /** The certificate for new connections. */
  get context(): SecureContext {
    return this.#context;
  }

  onChange(listener: (tls: TlsSettings) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files again. Files that do not match, for example halfway through a change, are logged and not used. */
  reload(): void {
    const { log } = this.#options;
    const { keyPath, certPath } = this.#tls;
    try {
      const tls = loadTls({ keyPath, certPath, readFile: (path) => readFileSync(path) });
      if (tls === null) return;
      this.#context = contextOf(tls);
      this.#tls = tls;
    } catch (error) {
      log.warn('tls.reload_failed', { error });
      return;
    }
    for (const listener of this.#listeners) listener(this.#tls);
    log.info('tls.reloaded', { validTo: new X509Certificate(this.#tls.cert).validTo });
  }

  close(): void {
    const { keyPath, certPath } = this.#tls;
    for (const path of [keyPath, certPath]) unwatchFile(path, this.#changed);
  }
}

/**
 * Refuses renegotiation (TLS 1.2), which costs this thread a signature each time. Node.js limits it only for
 * connections of a `tls.Server`, and TURN has none.
 */
function contextOf({ key, cert }: TlsSettings): SecureContext {
  return createSecureContext({ key, cert, secureOptions: constants.SSL_OP_NO_RENEGOTIATION });
}
