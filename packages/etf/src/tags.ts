/** Numbers of the External Term Format, named as there without `_EXT`. */

/** Precedes a term that is not part of another. */
export const VERSION = 131;

export const Tag = {
  newFloat: 70,
  bitBinary: 77,
  newPid: 88,
  newPort: 89,
  newerReference: 90,
  smallInteger: 97,
  integer: 98,
  float: 99,
  atom: 100,
  reference: 101,
  port: 102,
  pid: 103,
  smallTuple: 104,
  largeTuple: 105,
  nil: 106,
  string: 107,
  list: 108,
  binary: 109,
  smallBig: 110,
  largeBig: 111,
  newFun: 112,
  export: 113,
  newReference: 114,
  smallAtom: 115,
  map: 116,
  atomUtf8: 118,
  smallAtomUtf8: 119,
  v4Port: 120,
} as const;
