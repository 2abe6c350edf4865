// `npm run generate:api [folder]`: documents every export of the published packages in docs/api. Fails when an export
// has no comment.
import { join } from 'node:path';
import { refuseForeign, root, writeSite } from './site.mjs';

const [folder = join(root, 'docs', 'api')] = process.argv.slice(2);

refuseForeign(folder);
await writeSite(folder);
