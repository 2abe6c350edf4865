/** What stands in the place of a secret. Of constant length, so that it does not tell the length. */
export const MASK = '********';
