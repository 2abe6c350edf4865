import type { Processes } from '@bloom/processes';
import { type CallChannel, type ChannelOptions, PhoneProcess } from './phone-process.js';

export interface PhoneProcessesOptions {
  processes: Processes;
  /** Built entry of the process. */
  entry: URL;
  hangMs: number;
  /** Up to this many calls, each has a process to itself; beyond that, calls share processes. */
  most: number;
}

/**
 * Processes for all calls of a node. A few calls do not share, so that a crash costs only one of them. Many calls do,
 * because most of the cost of a call is waking its process fifty times a second.
 */
export class PhoneProcesses {
  readonly #options: PhoneProcessesOptions;
  readonly #processes = new Set<PhoneProcess>();

  constructor(options: PhoneProcessesOptions) {
    this.#options = options;
  }

  /** Opens the sound of a call. Rejects when no socket can be opened or its process exits. */
  open(options: ChannelOptions): Promise<CallChannel> {
    return this.#choose().open(options);
  }

  #choose(): PhoneProcess {
    const { most, processes, entry, hangMs } = this.#options;
    if (this.#processes.size >= most) {
      const [least] = [...this.#processes].toSorted((a, b) => a.calls - b.calls);
      if (least !== undefined) return least;
    }
    const process: PhoneProcess = new PhoneProcess({
      processes,
      entry,
      hangMs,
      onGone: () => void this.#processes.delete(process),
    });
    this.#processes.add(process);
    return process;
  }
}
