/** Version of this program; documents have their own. */
export const VERSION = '0.1.0';
