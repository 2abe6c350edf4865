/** Writes the OpenAPI document: `node packages/http-api/dist/write-openapi.js <version> [file]`. */
import { writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { openApiFile } from './openapi-file.js';

writeFileSync(argv[3] ?? 'docs/reference/openapi.json', openApiFile(argv[2] ?? '0.0.0'));
