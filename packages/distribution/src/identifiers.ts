import { randomBytes } from 'node:crypto';
import { Pid, Ref } from '@bloom/etf';

const SYSTEM_ID = 1;
const FIRST_ID = 100;

/** Creates the unique pids and references of one lifetime of a node. */
export class Identifiers {
  /** Pid of the services that every node has. */
  readonly system: Pid;
  #lastId = FIRST_ID;
  #serial = 0;
  #refs = 0;
  readonly #salt = randomBytes(4).readUInt32BE();

  constructor(
    readonly node: string,
    readonly creation: number,
  ) {
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
