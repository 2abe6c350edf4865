/**
 * Returns the function with a memory of its last call. The sessions of a room are told the same one after the other, so
 * all but the first find there what they need.
 *
 * Values are compared by `===`, so neither they nor results may change. Both stay in memory until the next call.
 */
export function forLast<V, R>(compute: (value: V) => R): (value: V) => R {
  let last: { value: V; result: R } | undefined;

  return (value) => {
    if (last?.value !== value) last = { value, result: compute(value) };

    return last.result;
  };
}
