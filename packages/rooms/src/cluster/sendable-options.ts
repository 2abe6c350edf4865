/** Options of peers and components are two levels deep; this leaves room for those to come. */
const DEEPEST = 8;

/**
 * Options as they travel to the node that owns the room: what lies deeper than any option is left empty. It is ignored, or
 * refused for its type, there as here, and would otherwise be too deep to be sent.
 */
export function sendableOptions(options: unknown, depth = 0): unknown {
  if (typeof options !== 'object' || options === null) return options;
  if (Array.isArray(options)) return depth === DEEPEST ? [] : options.map((item) => sendableOptions(item, depth + 1));
  if (depth === DEEPEST) return {};

  // Not by assignment: a client may call a key __proto__.
  return Object.fromEntries(Object.entries(options).map(([key, value]) => [key, sendableOptions(value, depth + 1)]));
}
