// Builds the last release from the history of this repository, so that tests can run its nodes beside this checkout's,
// as a rolling upgrade does. Everything is kept in node_modules/.cache, so a second run takes no time.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../setup.mjs';

/** The commit of the last release, named nowhere else. */
const LAST_RELEASE = 'd701568c00a31e113e5732a54b27a583334bcaf1';

const releases = join(root, 'node_modules', '.cache', 'bloom-releases');
const folder = join(releases, LAST_RELEASE);
const stamp = join(folder, '.bloom-built');
/** Parts with their own packages that a node does not need. Without its index.html the dashboard is not built. */
const LEFT_OUT = ['bench', 'deploy', 'docs', 'e2e', 'examples', 'scripts/api-pages', 'apps/dashboard/index.html'];

const digest = (text) => createHash('sha256').update(text).digest('hex');
const lockOf = (checkout) => readFileSync(join(checkout, 'package-lock.json'), 'utf8');

function run(program, args, options = {}) {
  const { status, error, stdout, stderr } = spawnSync(program, args, { maxBuffer: 256 * 1024 * 1024, ...options });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.slice(0, 2).join(' ')} failed: ${error?.message ?? `${stdout}${stderr}`}`);
}

/**
 * Returns the folder of the built release, or undefined if `buildLastRelease` has not built it for this checkout's
 * packages.
 */
export function lastReleaseFolder() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === digest(lockOf(root)) ? folder : undefined;
}

/** Returns the lockfile's entries of installed packages, by path, without those of parts that are left out. */
function installedOf(checkout) {
  const { packages } = JSON.parse(lockOf(checkout));
  const isKept = (path) => path.includes('node_modules/') && !LEFT_OUT.some((left) => path.startsWith(`${left}/`));
  return Object.entries(packages).filter(([path]) => isKept(path));
}

/**
 * Returns true if every third-party package in a checkout's lockfile is installed here, at the same path and version.
 */
function hasItsPackages(checkout) {
  const ours = new Map(installedOf(root));
  return installedOf(checkout).every(([path, { version, link }]) => link || ours.get(path)?.version === version);
}

/** Links the release to this checkout's third-party packages, and to its own packages instead of ours. */
function borrowPackages() {
  const installed = installedOf(folder);
  const link = (target, path) => {
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
  };
  for (const home of new Set(installed.map(([path]) => path.split('node_modules/')[0]))) {
    const from = join(root, home, 'node_modules');
    if (!existsSync(from)) continue;
    for (const name of readdirSync(from)) {
      if (name !== '@bloom' && !name.startsWith('.')) link(join(from, name), join(folder, home, 'node_modules', name));
    }
  }
  for (const [path, { link: isLink, resolved }] of installed) {
    if (isLink && existsSync(join(folder, resolved))) link(join(folder, resolved), join(folder, path));
  }
  // The marker that the release's own set-up leaves after an installation.
  writeFileSync(join(folder, 'node_modules', '.bloom-installed'), digest(lockOf(folder)));
}

/**
 * Builds the last release, which takes about 20 s, unless it is built. It uses this checkout's packages if the
 * lockfiles agree, or installs them from npm's cache or the registry.
 * @throws Error with the reason, such as a shallow clone
 */
function buildLastRelease() {
  if (lastReleaseFolder() !== undefined) return;
  if (spawnSync('git', ['cat-file', '-e', `${LAST_RELEASE}^{commit}`], { cwd: root }).status !== 0) {
    throw new Error(`this clone lacks its commit ${LAST_RELEASE}; \`git fetch --unshallow\` fetches the history`);
  }
  rmSync(releases, { recursive: true, force: true });
  mkdirSync(releases, { recursive: true });
  const paths = ['.', ...LEFT_OUT.map((path) => `:(exclude)${path}`)];
  const setUpIn = (checkout) => {
    const env = { ...process.env, npm_config_prefer_offline: 'true' };
    run(process.execPath, [join(checkout, 'scripts', 'setup.mjs')], { cwd: checkout, env });
  };
  const extracted = mkdtempSync(join(tmpdir(), 'bloom-release-'));
  try {
    run('tar', ['-x', '-C', extracted], {
      input: run('git', ['archive', LAST_RELEASE, '--', ...paths], { cwd: root }),
    });
    const borrows = hasItsPackages(extracted);
    // Not below node_modules, where the compiler would not name types of installed packages.
    if (!borrows) setUpIn(extracted);
    run('mv', [extracted, folder]);
    if (borrows) {
      borrowPackages();
      setUpIn(folder);
    }
    writeFileSync(stamp, digest(lockOf(root)));
  } finally {
    rmSync(extracted, { recursive: true, force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    buildLastRelease();
  } catch (error) {
    console.error(`The last release cannot be built: ${error.message}`);
    process.exit(1);
  }
}
