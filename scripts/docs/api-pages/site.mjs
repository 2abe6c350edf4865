// Writes static pages with TypeDoc. TypeDoc needs the compiler as a library, which TypeScript 7 does not offer, so this
// workspace has an older compiler.
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Application, LogLevel } from 'typedoc';

export const root = resolve(import.meta.dirname, '..', '..', '..');

const PACKAGES = ['client', 'react', 'server-sdk'];
const COMMENTED = ['Class', 'Interface', 'TypeAlias', 'Function', 'Method', 'Variable', 'Enum'];

/** Every export of the published packages; each must have a comment. */
const API = {
  name: 'Bloom',
  entryPoints: [...PACKAGES.map((name) => [name]), ['react', 'kit'], ['client', 'encryption']].map(
    ([name, ...folders]) => join(root, 'packages', name, 'src', ...folders, 'index.ts'),
  ),
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
};

/** Ends the process with 1 if writing a site to the folder would remove files of another kind. */
export function refuseForeign(folder) {
  const isOurs = !existsSync(folder) || existsSync(join(folder, 'assets', 'navigation.js'));
  if (isOurs || readdirSync(folder).length === 0) return;
  console.error(
    `${resolve(folder)} has files that are no earlier version of this site, and would be emptied: name another`,
  );
  process.exit(1);
}

/**
 * Ends the process with 1 when an export has no comment or a link leads nowhere. `prepare` receives the application.
 */
export async function writeSite(folder, options = {}, prepare = () => {}) {
  const app = await Application.bootstrap({ ...API, ...options });
  prepare(app);
  const project = await app.convert();
  if (project === undefined) process.exit(1);
  app.validate(project);
  for (const entry of project.children ?? []) entry.name = `@bloom/${entry.name.replace('/src', '')}`;
  if (!hasFailed(app)) await app.generateDocs(project, resolve(folder));
  if (hasFailed(app)) process.exit(1);
}

function hasFailed({ logger }) {
  return logger.hasErrors() || logger.hasWarnings();
}
