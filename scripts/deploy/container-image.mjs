// Builds the container images of this checkout with podman, without an image registry: the Dockerfile's base image is
// made from Debian's archive and the npm package of Node.js, once per machine. The tests run this;
// `node scripts/deploy/container-image.mjs` builds the images alone. Everything is kept in one folder of the user's
// cache.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { missingPackages } from '../testing/debian-packages.mjs';
import { root } from '../setup.mjs';

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'bloom-containers');
const RUN_ROOT = '/run/bloom-containers';

const PODMAN_SETTINGS = {
  // Separate storage, so that the machine's own images and containers stay untouched.
  root: join(cache, 'store'),
  runroot: join(RUN_ROOT, 'storage'),
  tmpdir: join(RUN_ROOT, 'libpod'),
  'network-config-dir': join(RUN_ROOT, 'networks'),
  'events-backend': 'none',
  // crun refuses hybrid cgroups; not every machine has systemd.
  runtime: 'runc',
  'cgroup-manager': 'cgroupfs',
};
export const PODMAN_OPTIONS = Object.entries(PODMAN_SETTINGS).map(([name, value]) => `--${name}=${value}`);

/** Images by content, named as in the compose files. */
export const IMAGES = {
  plain: { tag: 'localhost/bloom:latest', target: 'bloom' },
  gpl: { tag: 'localhost/bloom:gpl', target: 'bloom-gpl' },
};

const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
const [, base, major, suite] = /^FROM (node:(\d+)-(\w+)-slim)/m.exec(dockerfile) ?? [];

function run(program, args, options = {}) {
  const { status, error, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')} failed (${error?.message ?? status}):\n${stdout ?? ''}${stderr ?? ''}`);
}

/** Runs podman on the tests' storage and returns its output. @throws Error with its output when it fails */
export const podman = (...args) => run('podman', [...PODMAN_OPTIONS, ...args]);

const succeeds = (program, ...args) => spawnSync(program, args, { stdio: 'ignore' }).status === 0;

/** Returns the reason that containers cannot run here, or undefined. */
export function containersUnavailable() {
  if (process.platform !== 'linux') return `podman needs Linux, this is ${process.platform}`;
  if (process.getuid?.() !== 0) return 'podman is run as root here';
  const missing = missingPackages(['podman', 'runc', 'netavark', 'aardvark-dns', 'iptables', 'debootstrap']);
  if (missing.length > 0) return `${missing.join(', ')} not installed`;
  return succeeds('podman', ...PODMAN_OPTIONS, 'info') ? undefined : 'podman info fails';
}

/** Returns the mirror that this machine's apt uses. */
function mirror() {
  const uris = run('apt-get', ['indextargets', '--format', '$(REPO_URI)', `Codename: ${suite}`, 'Component: main']);
  return uris.split('\n')[0] || 'http://deb.debian.org/debian';
}

/**
 * Builds an equivalent of the base image on Docker Hub: Debian without documentation, Node.js, npm, the user `node`.
 */
function makeBase() {
  console.log(`Making the base image ${base} (once per machine, about a minute) ...`);
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'base-'));
  const rootfs = join(folder, 'rootfs');
  try {
    run('debootstrap', ['--variant=minbase', suite, rootfs, mirror()], { stdio: ['ignore', 'ignore', 'inherit'] });
    for (const path of ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'var/lib/apt/lists', 'var/cache/apt'])
      rmSync(join(rootfs, path), { recursive: true, force: true });
    const [packed] = JSON.parse(run('npm', ['pack', '--json', `node-linux-${process.arch}@${major}`], { cwd: folder }));
    run('tar', [
      '-xzf',
      join(folder, packed.filename),
      '-C',
      join(rootfs, 'usr/local'),
      '--strip-components=1',
      'package/bin',
    ]);
    run('npm', ['install', '--global', '--prefix', join(rootfs, 'usr/local'), 'npm@10']);
    run('chroot', [rootfs, 'useradd', '--uid', '1000', '--user-group', '--create-home', 'node']);
    run('tar', ['-C', rootfs, '-cf', join(folder, 'base.tar'), '.']);
    const env = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    podman(
      'import',
      '--change',
      env,
      '--change',
      'CMD ["node"]',
      join(folder, 'base.tar'),
      `docker.io/library/${base}`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Options that give npm in the build this machine's access to the registry. None of them stays in the image. */
function asThisMachine(folder) {
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  const settings = [`registry=${run('npm', ['config', 'get', 'registry']).trim()}`, 'prefer-offline=true'];
  const volumes = [];
  if (authorities !== undefined) {
    settings.push('cafile=/run/authorities.pem');
    volumes.push(`${authorities}:/run/authorities.pem:ro`);
  }
  const npmrc = join(folder, 'npmrc');
  writeFileSync(npmrc, `${settings.join('\n')}\n`);
  volumes.push(`${npmrc}:/usr/local/etc/npmrc:ro`);
  return ['--network', 'host', ...volumes.flatMap((volume) => ['--volume', volume])];
}

/**
 * Removes an earlier run's containers, even when their processes are gone, because podman still counts those as
 * running.
 */
export function freshContainers() {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  const left = mounts.filter((path) => path.startsWith(`${RUN_ROOT}/`) || path.startsWith(`${cache}/`));
  for (const path of left.toReversed()) succeeds('umount', '--lazy', path);
  // Not the folder itself, which may be a mount.
  mkdirSync(RUN_ROOT, { recursive: true });
  for (const name of readdirSync(RUN_ROOT)) rmSync(join(RUN_ROOT, name), { recursive: true, force: true });
  podman('rm', '--all', '--force', '--time', '0');
}

/**
 * Builds the named images with the real Dockerfile. Layers of an unchanged tree come from the cache. Returns the
 * duration in milliseconds, without the base image.
 */
export function buildImages(names = Object.keys(IMAGES)) {
  if (!succeeds('podman', ...PODMAN_OPTIONS, 'image', 'exists', `docker.io/library/${base}`)) makeBase();
  const began = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'bloom-image-'));
  try {
    for (const name of names) {
      const { tag, target } = IMAGES[name];
      podman(
        'build',
        '--format',
        'docker',
        ...asThisMachine(folder),
        '--layers',
        '--pull=never',
        '--target',
        target,
        '--tag',
        tag,
        root,
      );
    }
    // Every change of the tree leaves gigabytes of layers; only today's are kept as a cache.
    podman('image', 'prune', '--force', '--filter', 'until=24h');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return performance.now() - began;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const reason = containersUnavailable();
  if (reason !== undefined) {
    console.error(`No containers here: ${reason}`);
    process.exit(1);
  }
  buildImages(process.argv.length > 2 ? process.argv.slice(2) : undefined);
  console.log(podman('images'));
}
