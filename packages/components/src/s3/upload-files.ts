import { stat } from 'node:fs/promises';
import pLimit from 'p-limit';
import { ComponentError } from '../errors.js';
import { openStore, type ObjectStore, type S3Target, type StoreOptions } from './object-store.js';

/** Each object in flight holds up to 25 MB, and a node shutting down has many rooms to upload. */
export const UPLOADS_AT_ONCE = 4;

export interface StoredFile {
  key: string;
  path: string;
}

export interface UploadOptions {
  /** Called with the number of files so far. */
  onArrived?(files: number): void;
  /** Ends the upload when aborted. */
  signal?: AbortSignal;
}

export interface UploaderOptions extends StoreOptions {
  /** Skips objects that already exist with the right size. Only for keys whose content never changes. */
  skipPresent?: boolean;
  open?: (target: S3Target, options?: StoreOptions) => Promise<ObjectStore>;
}

/** Uploads sets of files, a few sets at a time, and checks that each file arrived completely. */
export class Uploader {
  readonly #options: UploaderOptions;
  readonly #limit = pLimit(UPLOADS_AT_ONCE);

  constructor(options: UploaderOptions = {}) {
    this.#options = options;
  }

  /**
   * Uploads the files one by one, stopping at the first failure.
   * @throws ComponentError `UPLOAD_FAILED`
   */
  upload(target: S3Target, files: readonly StoredFile[], options: UploadOptions = {}): Promise<void> {
    const { onArrived, signal } = options;

    return this.#limit(() =>
      this.#with(target, async (store) => {
        for (const [i, file] of files.entries()) {
          await this.#put(store, file, signal);
          onArrived?.(i + 1);
        }
      }),
    );
  }

  /** Removes those objects that exist. Never rejects. */
  async remove(target: S3Target, keys: readonly string[]): Promise<void> {
    await this.#with(target, async (store) => {
      for (const key of keys) await store.remove(key).catch(() => undefined);
    }).catch(() => undefined);
  }

  async #with(target: S3Target, run: (store: ObjectStore) => Promise<void>): Promise<void> {
    const { open = openStore, ...options } = this.#options;
    const store = await open(target, options);
    try {
      await run(store);
    } finally {
      store.close();
    }
  }

  async #put(store: ObjectStore, { key, path }: StoredFile, signal: AbortSignal | undefined): Promise<void> {
    const { size } = await stat(path);
    if (this.#options.skipPresent === true && (await store.sizeOf(key)) === size) return;
    await store.put(key, path, signal);
    const stored = await store.sizeOf(key);
    // Write-only credentials cannot read the size, so the store's acknowledgement has to suffice.
    if (stored === size || stored === 'unknown') return;
    throw new ComponentError('UPLOAD_FAILED', `${stored ?? 'no'} bytes of ${key} arrived, of ${size}`);
  }
}

/** Joins the parts of an object key; skips empty ones. */
export function keyOf(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('/');
}
