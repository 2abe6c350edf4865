// Finds the repository. Jest runs from its root, and other paths start there.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
