/** Of this program; the documents have a version of their own. */
export const VERSION = '0.1.0';
