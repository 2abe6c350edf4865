import { type CallChannel, type ChannelOptions, PhoneProcess } from './phone-process.js';

export interface PhoneProcessesOptions {
  /** The built entry of a process. */
  entry: URL;
  hangMs: number;
  /** Calls have processes of their own up to that many, and share them beyond. */
  most: number;
}

/**
 * The processes of all calls of a node. Few calls do not share: a fault costs one of them. Many calls do: what a call costs is
 * mostly the waking up of its process fifty times a second.
 */
export class PhoneProcesses {
  readonly #options: PhoneProcessesOptions;
  readonly #processes = new Set<PhoneProcess>();

  constructor(options: PhoneProcessesOptions) {
    this.#options = options;
  }

  /** Opens the sound of a call; rejects when there is no socket for it, or its process ends. */
  open(options: ChannelOptions): Promise<CallChannel> {
    return this.#choose().open(options);
  }

  #choose(): PhoneProcess {
    const { most, entry, hangMs } = this.#options;
    if (this.#processes.size >= most) {
      const [least] = [...this.#processes].toSorted((a, b) => a.calls - b.calls);
      if (least !== undefined) return least;
    }
    const process: PhoneProcess = new PhoneProcess({
      entry,
      hangMs,
      onGone: () => void this.#processes.delete(process),
    });
    this.#processes.add(process);
    return process;
  }
}
