/** The certificate of the HTTPS listener and of TURN over TLS. */
import { constants, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { loadTls, type TlsSettings } from '@bloom/config';
import type { Log } from '@bloom/log';
import { type Clock, systemClock, Timer } from '@bloom/time';

/** Interval at which file times are compared. This also detects replaced links, which Kubernetes and certbot use. */
const POLL_MS = 5_000;

export interface CertificateOptions {
  tls: TlsSettings;
  log: Log;
  pollMs?: number;
  clock?: Clock;
}

const FIX =
  'write a certificate and its own key, both complete and in PEM form, to JF_SSL_CERT_PATH and JF_SSL_KEY_PATH; until then the earlier pair is shown';

/** Reloads the certificate when its files change or on request. Open connections keep the old one. */
export class Certificate {
  readonly #options: CertificateOptions;
  readonly #listeners: ((tls: TlsSettings) => void)[] = [];
  readonly #pollMs: number;
  #tls: TlsSettings;
  #context: SecureContext;
  /** The last warning logged about files that cannot be used. */
  #complaint: string | undefined;
  readonly #retry: Timer;
  readonly #changed = (): void => this.filesChanged();

  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#pollMs = options.pollMs ?? POLL_MS;
    this.#retry = new Timer(options.clock ?? systemClock);
    this.#tls = options.tls;
    this.#context = contextOf(options.tls);
    const { keyPath, certPath } = options.tls;
    for (const path of [keyPath, certPath]) {
      watchFile(path, { interval: this.#pollMs, persistent: false }, this.#changed);
    }
  }

  /** The certificate for new connections. */
  get context(): SecureContext {
    return this.#context;
  }

  onChange(listener: (tls: TlsSettings) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files again. Logs whether they can be used, even if they have not changed. */
  reload(): void {
    this.#retry.stop();
    try {
      this.#use(this.#read());
    } catch (error) {
      this.#complain(error);
    }
  }

  /**
   * Uses the files if they have changed. They may be halfway through a change: they are read again after one more
   * interval before the log complains, once for each cause.
   */
  filesChanged(): void {
    this.#check(() => this.#retry.start(this.#pollMs, () => this.#check((error) => this.#complain(error))));
  }

  close(): void {
    this.#retry.stop();
    const { keyPath, certPath } = this.#tls;
    for (const path of [keyPath, certPath]) unwatchFile(path, this.#changed);
  }

  #check(failed: (error: unknown) => void): void {
    this.#retry.stop();
    try {
      const pair = this.#read();
      this.#complaint = undefined;
      if (!pair.tls.key.equals(this.#tls.key) || !pair.tls.cert.equals(this.#tls.cert)) this.#use(pair);
    } catch (error) {
      if (String(error) !== this.#complaint) failed(error);
    }
  }

  /** Reads the pair. @throws Error for files that are missing, malformed or do not match */
  #read(): { tls: TlsSettings; context: SecureContext } {
    const { keyPath, certPath } = this.#tls;
    const tls = { ...this.#tls, ...loadTls({ keyPath, certPath, readFile: (path) => readFileSync(path) }) };

    return { tls, context: contextOf(tls) };
  }

  #use({ tls, context }: { tls: TlsSettings; context: SecureContext }): void {
    this.#context = context;
    this.#tls = tls;
    this.#complaint = undefined;
    for (const listener of this.#listeners) listener(tls);
    this.#options.log.info('tls.reloaded', { validTo: new X509Certificate(tls.cert).validTo });
  }

  #complain(error: unknown): void {
    this.#complaint = String(error);
    this.#options.log.warn('tls.reload_failed', { error, fix: FIX });
  }
}

/**
 * Refuses renegotiation (TLS 1.2), which costs this thread a signature each time. Node.js limits it only for
 * connections of a `tls.Server`, and TURN has none.
 */
function contextOf({ key, cert }: TlsSettings): SecureContext {
  return createSecureContext({ key, cert, secureOptions: constants.SSL_OP_NO_RENEGOTIATION });
}
