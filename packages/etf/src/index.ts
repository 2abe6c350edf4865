/** Erlang's external term format: terms as bytes and as JavaScript values. */
export { Atom, atom, isAtom } from './atoms.js';
export { sameTerm } from './compare.js';
export { EtfError, type EtfErrorCode } from './errors.js';
export { Pid, Port, Ref } from './identifiers.js';
export type { DecodeOptions } from './limits.js';
export { decode, isDecodeError, TermReader } from './reader.js';
export {
  asBytes,
  atomMap,
  BitString,
  ExportFun,
  Float,
  ImproperList,
  isRecord,
  mapGet,
  Opaque,
  OpaqueFun,
  type Term,
  Tuple,
  tuple,
} from './terms.js';
export { encode, encodePart, TermWriter } from './writer.js';
