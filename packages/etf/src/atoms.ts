import { notEncodable } from './errors.js';
import { Tag } from './tags.js';

/** Maximum number of characters in an atom (Erlang reference manual, "Atom"). */
export const MAX_ATOM_CHARACTERS = 255;

/**
 * Atoms beyond this number are still decoded but no longer shared, so that a peer cannot fill our memory with names.
 */
export const MAX_INTERNED_ATOMS = 10_000;

/**
 * A named constant of Erlang, created with `atom()`. Each of the first `MAX_INTERNED_ATOMS` names is a single object,
 * so `===` is a shortcut. Where names may come from peers, compare `.name` or use `isAtom`.
 */
export class Atom {
  /**
   * The complete encoded form, tag included: SMALL_ATOM_UTF8_EXT (119) up to 255 bytes, otherwise ATOM_UTF8_EXT (118).
   */
  readonly wire: Uint8Array;

  constructor(readonly name: string) {
    if (countCharacters(name) > MAX_ATOM_CHARACTERS) {
      throw notEncodable(`an atom has at most ${MAX_ATOM_CHARACTERS} characters, this one starts ${name.slice(0, 40)}`);
    }
    this.wire = wireOf(name);
  }

  toString(): string {
    return name(this);
  }
}

function name(atom: Atom): string {
  return /^[a-z][A-Za-z0-9_@]*$/.test(atom.name) ? atom.name : `'${atom.name.replaceAll(/['\\]/g, '\\$&')}'`;
}

function countCharacters(text: string): number {
  if (text.length <= MAX_ATOM_CHARACTERS) return text.length;
  // Erlang counts code points, so a name of up to twice the limit in UTF-16 units may be valid.
  return text.length > 2 * MAX_ATOM_CHARACTERS ? text.length : Array.from(text).length;
}

function wireOf(text: string): Uint8Array {
  const body = Buffer.from(text, 'utf8');
  const small = body.length <= 255;
  const wire = new Uint8Array(body.length + (small ? 2 : 3));
  wire[0] = small ? Tag.smallAtomUtf8 : Tag.atomUtf8;
  if (small) wire[1] = body.length;
  else {
    wire[1] = body.length >> 8;
    wire[2] = body.length & 255;
  }
  wire.set(body, small ? 2 : 3);
  return wire;
}

const byName = new Map<string, Atom>();

// Open addressing over the encoded form: finding a known atom costs no allocation and no string.
let slots: (Atom | undefined)[] = Array.from({ length: 1024 });
let mask = slots.length - 1;

/**
 * Returns the atom with that name.
 * @throws EtfError NOT_ENCODABLE above 255 characters
 */
export function atom(text: string): Atom {
  return byName.get(text) ?? intern(new Atom(text));
}

/** Returns whether a value is an atom and, if a name is given, has that name. */
export function isAtom(value: unknown, text?: string): value is Atom {
  return value instanceof Atom && (text === undefined || value.name === text);
}

/** Returns the shared atom whose UTF-8 name is the `length` bytes (at most 255) at `start`, if it is known. */
export function internedAtom(bytes: Uint8Array, start: number, length: number): Atom | undefined {
  let slot = hash(bytes, start, length) & mask;
  for (;;) {
    const found = slots[slot];
    if (found === undefined) return undefined;
    if (sameName(found.wire, bytes, start, length)) return found;
    slot = (slot + 1) & mask;
  }
}

/** Returns the current number of shared atoms. */
export function internedAtomCount(): number {
  return byName.size;
}

function intern(fresh: Atom): Atom {
  if (byName.size >= MAX_INTERNED_ATOMS || fresh.wire[0] !== Tag.smallAtomUtf8) return fresh;
  byName.set(fresh.name, fresh);
  if (byName.size * 2 > slots.length) rehash();
  else place(fresh);
  return fresh;
}

function rehash(): void {
  slots = Array.from({ length: slots.length * 4 });
  mask = slots.length - 1;
  for (const known of byName.values()) place(known);
}

function place(known: Atom): void {
  let slot = hash(known.wire, 2, known.wire.length - 2) & mask;
  while (slots[slot] !== undefined) slot = (slot + 1) & mask;
  slots[slot] = known;
}

function hash(bytes: Uint8Array, start: number, length: number): number {
  let value = length;
  for (let i = start; i < start + length; i++) value = (Math.imul(value, 31) + (bytes[i] as number)) | 0;
  return value ^ (value >>> 15);
}

function sameName(wire: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (wire.length !== length + 2) return false;
  for (let i = 0; i < length; i++) if (wire[i + 2] !== bytes[start + i]) return false;
  return true;
}
