import { stat } from 'node:fs/promises';
import pLimit from 'p-limit';
import { ComponentError } from '../errors.js';
import { openStore, type ObjectStore, type S3Target, type StoreOptions } from './object-store.js';

/** An object in flight holds up to 25 MB, and a node that ends has many rooms to upload. */
export const UPLOADS_AT_ONCE = 4;

export interface StoredFile {
  key: string;
  path: string;
}

export interface UploaderOptions extends StoreOptions {
  /** Objects that are there with the right size are not sent again. Only for keys whose content never changes. */
  skipPresent?: boolean;
  open?: (target: S3Target, options?: StoreOptions) => Promise<ObjectStore>;
}

/** Brings sets of files to their buckets, a few sets at a time, and checks that each file arrived whole. */
export class Uploader {
  readonly #options: UploaderOptions;
  readonly #limit = pLimit(UPLOADS_AT_ONCE);

  constructor(options: UploaderOptions = {}) {
    this.#options = options;
  }

  /** Uploads one file after another; ends at the first that fails. @throws ComponentError `UPLOAD_FAILED` */
  upload(target: S3Target, files: readonly StoredFile[]): Promise<void> {
    return this.#limit(() =>
      this.#with(target, async (store) => {
        for (const file of files) await this.#put(store, file);
      }),
    );
  }

  /** Removes what there is of the objects. Never rejects. */
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

  async #put(store: ObjectStore, { key, path }: StoredFile): Promise<void> {
    const { size } = await stat(path);
    if (this.#options.skipPresent === true && (await store.sizeOf(key)) === size) return;
    await store.put(key, path);
    const stored = await store.sizeOf(key);
    // Credentials that may only write cannot look: then the store's acknowledgement has to do.
    if (stored === size || stored === 'unknown') return;
    throw new ComponentError('UPLOAD_FAILED', `${stored ?? 'no'} bytes of ${key} arrived, of ${size}`);
  }
}

/** Joins the parts of an object key; empty ones are left out. */
export function keyOf(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('/');
}
