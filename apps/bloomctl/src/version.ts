/** Version of this program. Documents have a separate one. */
export const VERSION = '0.1.0';
