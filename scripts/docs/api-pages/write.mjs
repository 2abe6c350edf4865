// `npm run generate:api [folder]`: documents every export of the published packages in docs/api, with TypeDoc. Fails
// when an export has no comment. TypeDoc needs the compiler as a library, which TypeScript 7 does not offer, so this
// workspace has an older compiler.
import { join, resolve } from 'node:path';
import { Application, LogLevel } from 'typedoc';

const root = resolve(import.meta.dirname, '..', '..', '..');
const PACKAGES = ['client', 'react', 'server-sdk'];
const COMMENTED = ['Class', 'Interface', 'TypeAlias', 'Function', 'Method', 'Variable', 'Enum'];

const [folder = join(root, 'docs', 'api')] = process.argv.slice(2);
const app = await Application.bootstrap({
  name: 'Bloom',
  entryPoints: PACKAGES.map((name) => join(root, 'packages', name, 'src', 'index.ts')),

  tsconfig: join(import.meta.dirname, 'tsconfig.json'),
  readme: 'none',
  disableSources: true,
  excludePrivate: true,
  excludeInternal: true,
  excludeExternals: true,
  hideGenerator: true,
  logLevel: LogLevel.Warn,
  // The repository's compiler checks the types.
  skipErrorChecking: true,
  packagesRequiringDocumentation: PACKAGES.map((name) => `@bloom/${name}`),
  requiredToBeDocumented: COMMENTED,
  validation: { notExported: false, invalidLink: true, notDocumented: true },
  treatWarningsAsErrors: true,
});
const project = await app.convert();
if (project === undefined) process.exit(1);
app.validate(project);
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1);
for (const entry of project.children ?? []) entry.name = `@bloom/${entry.name.replace('/src', '')}`;
await app.generateDocs(project, resolve(folder));
