import { z } from 'zod';

/** The API's text for all structural faults. */
export const INVALID_STRUCTURE = 'Invalid request body structure';

/**
 * Like `schema.safeParse`, which throws for some values of a wrong type: a length limit on text compares the `length`
 * of any object, and `{"toString": null, "valueOf": null}` cannot be compared.
 */
export function validate<T extends z.ZodType>(
  schema: T,
  given: unknown,
  options?: Parameters<T['safeParse']>[1],
): z.ZodSafeParseResult<z.output<T>> {
  try {
    return schema.safeParse(given, options);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const issue: z.core.$ZodIssue = {
      code: 'invalid_type',
      expected: 'string',
      input: given,
      path: [],
      message: INVALID_STRUCTURE,
    };

    return { success: false, error: new z.ZodError([issue]) as z.ZodError<z.output<T>> };
  }
}
