// Where the repository is. Jest runs from its root; everything else is found from there.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
