import { takes, unchecked, type Shapes } from '../shape.js';
import type { Protocol } from '../protocol.js';

/** Shapes of a protocol for tests that do not depend on the shape of messages: any fields, any answer. */
export function looseShapes<P extends Protocol>(...types: readonly (keyof P & string)[]): Shapes<P> {
  const any = { message: unchecked(), answer: takes({}, unchecked()).answer };

  return Object.fromEntries(types.map((type) => [type, any])) as unknown as Shapes<P>;
}
