/** Writes the reference page of the configuration: `node packages/config/dist/write-reference.js <file>`. */
import { writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { renderReference } from './reference-page.js';

const file = argv[2] ?? 'docs/reference/configuration.md';
writeFileSync(file, renderReference());
