/** The certificate of the HTTPS listener and of TURN over TLS. */
import { constants, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { loadTls, type TlsSettings } from '@bloom/config';
import type { Log } from '@bloom/log';

/** Files are compared by their times, which also sees links that are exchanged, as Kubernetes and certbot do. */
const POLL_MS = 5_000;

export interface CertificateOptions {
  tls: TlsSettings;
  log: Log;
  pollMs?: number;
}

/** Reads the certificate again when its files change or on request. Connections that are open keep the old one. */
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

  /** The certificate of new connections. */
  get context(): SecureContext {
    return this.#context;
  }

  onChange(listener: (tls: TlsSettings) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files again. Files that do not fit together, as in the middle of a change, are logged and not used. */
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
 * Refuses renegotiation (TLS 1.2), each of which costs this thread a signature. Node.js limits it for connections of a `tls.Server`
 * only, and those of TURN have none.
 */
function contextOf({ key, cert }: TlsSettings): SecureContext {
  return createSecureContext({ key, cert, secureOptions: constants.SSL_OP_NO_RENEGOTIATION });
}
