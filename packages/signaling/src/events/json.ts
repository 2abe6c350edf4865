/** Maximum nesting of a media event: metadata is copied and encoded recursively. */
export const MAX_JSON_DEPTH = 512;

/** Returns whether JSON text nests deeper than `max`, without parsing it. The result is arbitrary for invalid JSON. */
export function nestsDeeper(text: string, max: number): boolean {
  // Each level takes at least one character, so nearly every event returns here.
  if (text.length <= max) return false;
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === 0x5c) index += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) {
      inString = true;
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > max) return true;
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1;
    }
  }
  return false;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
