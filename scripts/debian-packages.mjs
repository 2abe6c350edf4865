// Installs the Debian packages that the tests talk to, where that is possible (Debian or Ubuntu, root).
// `node scripts/debian-packages.mjs [name ...]`: all of them, or the named ones. Without rights it only says what is missing.
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Package -> a program that proves it is there. None is needed to run Bloom. */
export const packages = {
  chromium: 'chromium',
  'erlang-base': 'erl',
  'erlang-dev': 'erlc',
  elixir: 'elixir',
  ffmpeg: 'ffprobe',
  iproute2: 'ip',
  openssl: 'openssl',
  kamailio: 'kamailio',
  'baresip-core': 'baresip',
  'sip-tester': 'sipp',
  tcpdump: 'tcpdump',
};

/** Not for the tests: what the benchmarks compare with. */
const rivals = { janus: 'janus' };

export function which(program) {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin']) {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return join(folder, program);
    } catch {
      // not here
    }
  }
  return undefined;
}

function apt(...args) {
  spawnSync('apt-get', ['-qq', '-o', 'Dpkg::Use-Pty=0', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

/** Returns the packages that are still missing. */
export function ensurePackages(names = Object.keys(packages)) {
  const missing = () => names.filter((name) => !which(packages[name] ?? rivals[name]));
  const before = missing();
  if (before.length === 0) return [];
  if (!which('apt-get') || process.getuid?.() !== 0) return before;
  console.log(`Installing Debian packages for the tests: ${before.join(' ')} ...`);
  apt('update');
  // One by one: a name that this release does not have must not cost the others.
  for (const name of before) apt('install', '-y', '--no-install-recommends', name);
  return missing();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const left = ensurePackages(process.argv.length > 2 ? process.argv.slice(2) : undefined);
  if (left.length > 0) console.log(`Missing: ${left.join(' ')}. Install with: sudo apt-get install ${left.join(' ')}`);
}
