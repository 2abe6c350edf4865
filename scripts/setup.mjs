// Makes a fresh checkout ready to run: checks Node, installs packages, compiles sources, builds the page. `npm start`,
// `npm test` and `npm run check` use it. It imports only Node's own modules, because nothing is installed yet.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  console.error(`Bloom needs Node 20.19 or newer; this is ${process.versions.node}. See https://nodejs.org.`);
  process.exit(1);
}

/** Runs a program and shows its output. If it fails, ends this process with its status. */
export function run(command, args, options = {}) {
  const { status, error, signal } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error) {
    console.error(`${command} could not be started: ${error.message}`);
    process.exit(1);
  }
  if (status !== 0) process.exit(status ?? (signal ? 1 : 0));
}

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const digest = (text) => createHash('sha256').update(text).digest('hex');

/**
 * Installs the lockfile's packages when it has changed. `npm ci` would refuse a lockfile that lacks optional packages
 * of other platforms, and we do not control which of those a registry has. Development packages are included because
 * `NODE_ENV=production npm start` needs the compiler.
 */
export function install() {
  const stamp = join(root, 'node_modules', '.bloom-installed');
  const wanted = digest(readFileSync(join(root, 'package-lock.json')));
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  console.log('Installing packages (once, about a minute) ...');
  run(npm, ['install', '--include=dev', '--no-save', '--no-progress', '--loglevel=error']);
  writeFileSync(stamp, wanted);
}

/**
 * Returns a digest of the page's sources and those of the packages in it. Size and time of every file suffice to tell
 * whether a build is up to date.
 */
export function pageSources(folder) {
  const page = join(folder, 'apps', 'dashboard');
  const { devDependencies } = JSON.parse(readFileSync(join(page, 'package.json'), 'utf8'));
  // Its tests also need the node.
  const packages = Object.keys(devDependencies).filter((name) => /^@bloom\/(?!app-)/.test(name));
  const seen = [];
  const walk = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      if (entry.name === 'dist' || entry.name === 'node_modules') continue;
      const path = join(dir, entry.name);
      if (entry.isDirectory()) walk(path);
      else seen.push(`${path} ${statSync(path).size} ${statSync(path).mtimeMs}`);
    }
  };
  for (const one of [page, ...packages.map((name) => join(folder, 'packages', name.slice('@bloom/'.length), 'src'))])
    walk(one);
  return digest(seen.toSorted().join('\n'));
}

/** Projects that the compiler builds. The container image is built from a tree without the benchmarks. */
export function projects(folder) {
  const { references } = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8'));
  return references.map(({ path }) => path).filter((path) => existsSync(join(folder, path)));
}

/**
 * Returns the environment with the commit of the checkout, which a node reports. The commit ends in `-dirty` if files
 * have changed since. A commit that is already set stays, and without git there is none.
 */
export function withCommit(env, folder = root) {
  if (env.JF_GIT_COMMIT || !existsSync(join(folder, '.git'))) return env;
  const args = ['describe', '--always', '--dirty', '--exclude=*'];
  const stdio = ['ignore', 'pipe', 'ignore'];
  const { status, stdout } = spawnSync('git', args, { cwd: folder, encoding: 'utf8', stdio });
  return status === 0 ? { ...env, JF_GIT_COMMIT: stdout.trim() } : env;
}

function build() {
  if (!existsSync(join(root, 'apps', 'bloom', 'dist'))) console.log('Compiling (once, about a minute) ...');
  run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b', ...projects(root)]);
  for (const bundle of ['bundle-sdks.mjs', 'bundle-bloomctl.mjs', 'bundle-docs-page.mjs', 'bundle-node.mjs'])
    run(process.execPath, [join(root, 'scripts', 'build', bundle)]);
  const page = join(root, 'apps', 'dashboard');
  if (!existsSync(join(page, 'index.html'))) return;
  const stamp = join(page, 'dist', '.built-from');
  const wanted = pageSources(root);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  console.log('Building the page ...');
  run(process.execPath, [join(root, 'node_modules', 'vite', 'bin', 'vite.js'), 'build', '--logLevel', 'warn'], {
    cwd: page,
  });
  mkdirSync(join(page, 'dist'), { recursive: true });
  writeFileSync(stamp, wanted);
}

export function setUp() {
  requireNode();
  install();
  build();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) setUp();
