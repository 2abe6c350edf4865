import { z } from 'zod';

/** Maximum length of a room id, which is used as a directory name, in characters. */
export const MAX_ROOM_ID = 255;

/** Limit on a client's value quoted in a message, characters. */
const MAX_SHOWN = 1_000;

/** Quotes a client's value in a message: text unchanged, other values as JSON. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : jsonText(value);

  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
}

function jsonText(value: unknown): string {
  // Numbers too large to represent would be `null` in JSON.
  if (typeof value === 'number') return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Deeply nested JSON can be parsed but not serialised again.
    return '<nested value>';
  }
}

/** Any JSON value of the client. */
export const Metadata = z
  .union([z.record(z.string(), z.unknown()), z.array(z.unknown()), z.string(), z.number(), z.boolean(), z.null()])
  .meta({ description: 'Any JSON value that the client gave; null when it gave none' });

export const Track = z
  .strictObject({
    id: z.string().meta({ description: 'Track id', examples: ['5:c4b6a7f2-2a5f-4f2c-8f0e-1c7a6a5a0f11'] }),
    type: z.enum(['audio', 'video']).meta({ description: 'Kind of media' }),
    metadata: Metadata,
    muted: z
      .boolean()
      .optional()
      .meta({ description: 'Whether the backend withholds the track; absent until it first did' }),
  })
  .meta({ id: 'Track', description: 'A published track' });

/** Every error that a client can act on. */
export const ErrorBody = z
  .strictObject({ errors: z.string().meta({ description: 'What is wrong, a sentence with the offending value' }) })
  .meta({ id: 'Error', description: 'Error message' });

/** The error of an object that only our own requests have, so that a typo is not obeyed as an omission. */
export const noOthers = {
  error: ({ code, keys = [] }: { code?: string; keys?: readonly string[] }) =>
    code === 'unrecognized_keys' ? `Unknown field "${shown(keys[0])}"` : undefined,
};
