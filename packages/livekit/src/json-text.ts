/** How JSON of Bloom's and texts and bytes of LiveKit's become each other. */

/** Returns a room's metadata as LiveKit's text: text unchanged, other values as JSON. */
export function textOf(metadata: unknown): string {
  if (metadata === undefined || metadata === null) return '';

  return typeof metadata === 'string' ? metadata : JSON.stringify(metadata);
}

/** Returns a count that fits protobuf's uint32. */
export function uint32Of(count: number): number {
  return Math.min(count, 2 ** 32 - 1);
}

/** Returns bytes as the data of a message: JSON if they are, else text, else base64. */
export function dataOf(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') };
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
