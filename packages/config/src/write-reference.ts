/** Writes the reference page. Run from the repository root: `node packages/config/dist/write-reference.js`. */
import { writeFileSync } from 'node:fs';
import { renderReference } from './reference-page.js';

writeFileSync('docs/reference/configuration.md', renderReference());
