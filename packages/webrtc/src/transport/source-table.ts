import type { RelayClient } from '../relay/allocation.js';
import type { DirectPath } from './media-path.js';

/** The transport that owns a source because its checks arrive from there directly. */
export interface DirectOwner {
  receive(path: DirectPath, packet: Buffer, nowMs: number): void;
  dropDirect(path: DirectPath): void;
  /** Returns true if media currently uses this path, to a client that has proven its keys. */
  holds(path: DirectPath): boolean;
}

/** State kept for one UDP source address. */
export interface Source extends RelayClient {
  direct: { owner: DirectOwner; path: DirectPath } | undefined;
}

/**
 * Sources by port, then address: a number is a cheaper key than a string built per packet, and few sources share a
 * port.
 */
export class SourceTable {
  readonly #byPort = new Map<number, Source[]>();

  /** `local` is the index of our own address. */
  get(address: string, port: number, local: number): Source | undefined {
    const sources = this.#byPort.get(port);
    if (sources === undefined) return undefined;
    for (const source of sources) {
      if (source.flow.address === address && source.flow.local === local) return source;
    }
    return undefined;
  }

  /** Stores a source that has an allocation or an owner, and removes any other. */
  update(source: Source): void {
    const { port } = source.flow;
    const sources = this.#byPort.get(port);
    const needed = source.allocation !== undefined || source.direct !== undefined;
    if (needed && sources === undefined) this.#byPort.set(port, [source]);
    else if (needed && sources !== undefined && !sources.includes(source)) sources.push(source);
    else if (!needed && sources !== undefined) {
      const rest = sources.filter((other) => other !== source);
      if (rest.length === 0) this.#byPort.delete(port);
      else this.#byPort.set(port, rest);
    }
  }
}
