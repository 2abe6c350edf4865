/** Writes the OpenAPI document; run from the root of the repository: `node packages/http-api/dist/write-openapi.js`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { openApiFile } from './openapi-file.js';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
writeFileSync('docs/reference/openapi.json', openApiFile(version));
