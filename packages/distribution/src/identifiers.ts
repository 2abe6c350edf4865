import { Pid, Ref } from '@bloom/etf';

const SYSTEM_ID = 1;
const FIRST_ID = 100;

/** Returns a creation for a node that no port mapper has registered. */
export function anyCreation(random: () => number): number {
  return 4 + Math.floor(random() * 0xffff_fff0);
}

/** Creates the unique pids and references of one lifetime of a node. */
export class Identifiers {
  /** Pid of the services that every node has. */
  readonly system: Pid;
  #lastId = FIRST_ID;
  #serial = 0;
  #refs = 0;
  readonly #salt: number;

  constructor(
    readonly node: string,
    readonly creation: number,
    /** 32 bits that other nodes cannot guess; part of every reference. */
    salt: number,
  ) {
    this.#salt = salt;
    this.system = new Pid(node, SYSTEM_ID, 0, creation);
  }

  pid(): Pid {
    this.#lastId += 1;
    if (this.#lastId > 0xffff_ffff) {
      this.#lastId = FIRST_ID + 1;
      this.#serial += 1;
    }
    return new Pid(this.node, this.#lastId, this.#serial, this.creation);
  }

  /** Returns a reference of three words, the first below 2^18, as Erlang does. */
  ref(): Ref {
    this.#refs += 1;
    return new Ref(this.node, this.creation, [
      this.#refs % 0x40000,
      Math.floor(this.#refs / 0x40000) >>> 0,
      this.#salt,
    ]);
  }
}
