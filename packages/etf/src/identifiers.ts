import { atom } from './atoms.js';
import { notEncodable } from './errors.js';
import { Tag } from './tags.js';

/** A process of some node. `creation` distinguishes one lifetime of a node from the next. */
export class Pid {
  // Pids are sent far more often than created, so their encoded form is kept.
  #wire: Uint8Array | undefined = undefined;

  constructor(
    readonly node: string,
    readonly id: number,
    readonly serial: number,
    readonly creation: number,
  ) {}

  /** The encoded form: NEW_PID_EXT (88). */
  get wire(): Uint8Array {
    return (this.#wire ??= pidWire(this));
  }

  toString(): string {
    return `#Pid<${this.node}.${this.id}.${this.serial}>`;
  }
}

export class Port {
  constructor(
    readonly node: string,
    readonly id: bigint,
    readonly creation: number,
  ) {}
}

/** A unique reference: 1 to 5 words of 32 bits. */
export class Ref {
  #wire: Uint8Array | undefined = undefined;

  constructor(
    readonly node: string,
    readonly creation: number,
    readonly words: readonly number[],
  ) {}

  /** The encoded form: NEWER_REFERENCE_EXT (90). @throws EtfError NOT_ENCODABLE unless there are 1 to 5 words */
  get wire(): Uint8Array {
    return (this.#wire ??= refWire(this));
  }

  toString(): string {
    return `#Ref<${this.node}.${this.words.join('.')}>`;
  }
}

function pidWire(pid: Pid): Uint8Array {
  const node = atom(pid.node).wire;
  const wire = Buffer.allocUnsafe(node.length + 13);
  wire[0] = Tag.newPid;
  wire.set(node, 1);
  const at = wire.writeUInt32BE(pid.id >>> 0, node.length + 1);
  wire.writeUInt32BE(pid.creation >>> 0, wire.writeUInt32BE(pid.serial >>> 0, at));
  return wire;
}

function refWire(ref: Ref): Uint8Array {
  const node = atom(ref.node).wire;
  if (ref.words.length < 1 || ref.words.length > 5) throw notEncodable(`a reference of ${ref.words.length} words`);
  const wire = Buffer.allocUnsafe(node.length + 7 + ref.words.length * 4);
  wire[0] = Tag.newerReference;
  wire.writeUInt16BE(ref.words.length, 1);
  wire.set(node, 3);
  let at = wire.writeUInt32BE(ref.creation >>> 0, node.length + 3);
  for (const word of ref.words) at = wire.writeUInt32BE(word >>> 0, at);
  return wire;
}
