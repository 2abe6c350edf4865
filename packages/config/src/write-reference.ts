/** Writes the reference page, from the root of the repository: `node packages/config/dist/write-reference.js`. */
import { writeFileSync } from 'node:fs';
import { renderReference } from './reference-page.js';

writeFileSync('docs/reference/configuration.md', renderReference());
