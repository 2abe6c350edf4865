// `node scripts/install-examples.mjs <folder> [example ...]`: examples, all by default, installed there as by somebody who has only the published packages. These are
// packed from this checkout; the rest comes from the registry, or the cache of npm. Tests run the examples from there.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './setup.mjs';

const PACKAGES = ['client', 'react', 'server-sdk'];
/** Folders that get other versions than the newest. */
const VARIANTS = [{ example: 'react-call', folder: 'react-call-18', versions: ['react@18', 'react-dom@18'] }];
const QUIET = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error', '--prefer-offline'];
const INSTALL_LIMIT_MS = 180_000;

/** Packs the published packages as they were built. Returns the path of each by its name. */
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

/**
 * Installs examples, all by default, into folders of their own below `target`.
 * @throws Error when npm fails, such as without a network
 */
export function installExamples(target, chosen = []) {
  const packed = packPackages(join(target, '.packed'));
  const names = readdirSync(join(root, 'examples')).filter((name) =>
    existsSync(join(root, 'examples', name, 'package.json')),
  );
  const copies = [...names.map((name) => ({ example: name, folder: name, versions: [] })), ...VARIANTS];
  const wanted = copies.filter(({ folder }) => chosen.length === 0 || chosen.includes(folder));
  if (wanted.length === 0) throw new Error(`no such example: ${chosen.join(' ')}; there are ${names.join(', ')}`);
  for (const { example, folder, versions } of wanted) {
    const home = join(target, folder);
    rmSync(home, { recursive: true, force: true });
    const skipped = /[/\\](node_modules|\.next|package-lock\.json)$/;
    cpSync(join(root, 'examples', example), home, { recursive: true, filter: (path) => !skipped.test(path) });
    const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
    const tarballs = Object.keys(dependencies).flatMap((name) => packed[name] ?? []);
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
    console.error('Usage: node scripts/install-examples.mjs <folder> [example ...]');
    process.exit(64);
  }
  try {
    installExamples(resolve(target), chosen);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
