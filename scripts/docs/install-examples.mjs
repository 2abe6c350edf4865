// `node scripts/docs/install-examples.mjs <folder> [example ...]`: installs the examples and the dashboard, by default
// all of them, as a user with only the published packages would. Those are packed from this checkout; the rest comes
// from the registry or npm's cache. Tests run them from there.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../setup.mjs';

const PACKAGES = ['client', 'react', 'server-sdk'];
/** Also installed: one example with older versions, and the dashboard. */
const OTHERS = [
  { source: 'docs/examples/react-call', folder: 'react-call-18', versions: ['react@18', 'react-dom@18'] },
  { source: 'apps/dashboard', folder: 'dashboard/apps/dashboard', versions: [] },
];
/** Files that a checkout has besides sources, and tests, which use unpublished packages. */
const SKIPPED = /[/\\](node_modules|dist|testing|\.next|package-lock\.json|[\w-]+\.test\.tsx?)$/;
const QUIET = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error', '--prefer-offline'];
const INSTALL_LIMIT_MS = 180_000;

/** Packs the built published packages. Returns their paths by package name. */
function packPackages(folder) {
  mkdirSync(folder, { recursive: true });

  return Object.fromEntries(
    PACKAGES.map((name) => {
      const pack = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder];
      const output = execFileSync('npm', pack, { cwd: join(root, 'packages', name), encoding: 'utf8' });
      const [{ filename }] = JSON.parse(output.slice(output.indexOf('[')));
      return [`@bloom/${name}`, join(folder, filename)];
    }),
  );
}

/** Removes unpublished packages of this workspace from a manifest. Returns the tarballs of the published ones. */
function usePublished(path, packed) {
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  const tarballs = [];
  for (const dependencies of [manifest.dependencies ?? {}, manifest.devDependencies ?? {}]) {
    for (const name of Object.keys(dependencies).filter((one) => one.startsWith('@bloom/'))) {
      if (packed[name] === undefined) delete dependencies[name];
      else tarballs.push(packed[name]);
    }
  }
  writeFileSync(path, JSON.stringify(manifest));
  return tarballs;
}

/**
 * Installs the examples and the dashboard, by default all of them, into separate folders below `target`.
 * @throws Error when npm fails, such as without a network
 */
export function installExamples(target, chosen = []) {
  const packed = packPackages(join(target, '.packed'));
  const names = readdirSync(join(root, 'docs', 'examples')).filter((name) =>
    existsSync(join(root, 'docs', 'examples', name, 'package.json')),
  );
  const copies = [...names.map((name) => ({ source: `docs/examples/${name}`, folder: name, versions: [] })), ...OTHERS];
  const wanted = copies.filter(({ folder }) => chosen.length === 0 || chosen.includes(folder));
  if (wanted.length === 0) throw new Error(`no such example: ${chosen.join(' ')}; there are ${names.join(', ')}`);
  // The compiler settings that the dashboard extends.
  cpSync(join(root, 'tsconfig.json'), join(target, 'dashboard', 'tsconfig.json'));
  for (const { source, folder, versions } of wanted) {
    const home = join(target, folder);
    rmSync(home, { recursive: true, force: true });
    cpSync(join(root, source), home, { recursive: true, filter: (path) => !SKIPPED.test(path) });
    const tarballs = usePublished(join(home, 'package.json'), packed);
    execFileSync('npm', ['install', ...QUIET, ...tarballs, ...versions], {
      cwd: home,
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: INSTALL_LIMIT_MS,
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target, ...chosen] = process.argv.slice(2);
  if (target === undefined) {
    console.error('Usage: node scripts/docs/install-examples.mjs <folder> [example ...]');
    process.exit(64);
  }
  try {
    installExamples(resolve(target), chosen);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
