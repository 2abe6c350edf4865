// Installs the Debian packages that the tests use, where possible (Debian or Ubuntu, as root).
// `node scripts/testing/debian-packages.mjs [name ...]`: installs all or the named ones. Without root it only lists
// what is missing.
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Package -> a program that proves it is installed (dpkg is asked where there is none), and its use in the tests. Bloom
 * needs none of them to run.
 */
const packages = {
  'chromium-headless-shell': { program: 'chromium-headless-shell', why: 'calls in a browser' },
  chromium: { program: 'chromium', why: 'cameras in a browser, and nightly calls' },
  'firefox-esr': { program: 'firefox-esr', why: 'calls with a browser of another engine' },
  'erlang-base': { program: 'erl', why: 'the original on the other end of links' },
  'erlang-dev': { program: 'erlc', why: 'Erlang programs and erl_call' },
  elixir: { program: 'elixir', why: 'an Elixir node in the cluster' },
  ffmpeg: { program: 'ffprobe', why: 'making and judging media files' },
  mpv: { program: 'mpv', why: 'a player of streams' },
  iproute2: { program: 'ip', why: 'hosts in network namespaces' },
  openssl: { program: 'openssl', why: 'DTLS and TLS from another hand' },
  'gnutls-bin': { program: 'gnutls-cli', why: 'DTLS from a third hand' },
  kamailio: { program: 'kamailio', why: 'the registrar of the phones' },
  'baresip-core': { program: 'baresip', why: 'a phone' },
  'sip-tester': { program: 'sipp', why: 'scripted phones' },
  podman: { program: 'podman', why: 'containers of the real image' },
  runc: { program: 'runc', why: 'runs them with any kind of cgroups' },
  netavark: { program: 'netavark', why: 'networks of the containers' },
  'aardvark-dns': { program: 'aardvark-dns', why: 'names in these networks' },
  iptables: { program: 'iptables', why: 'published ports of the containers, and firewalls' },
  debootstrap: { program: 'debootstrap', why: 'makes their base image' },
  prometheus: { program: 'promtool', why: 'checking the alert rules, and scraping a node' },
  'prometheus-alertmanager': { program: 'amtool', why: 'checking where alerts go' },
  caddy: { program: 'caddy', why: 'a proxy in front of a node' },
  haproxy: { program: 'haproxy', why: 'a load balancer that sends PROXY headers' },
  'docker-compose': { program: 'docker-compose', why: 'reading the compose files' },
  'python3-aiortc': { why: 'WHIP and WHEP by another hand' },
  'python3-aiohttp': { why: 'the HTTP of that' },
  zsh: { program: 'zsh', why: 'completing commands of bloomctl' },
  fish: { program: 'fish', why: 'the same in another shell' },
  tcpdump: { program: 'tcpdump', why: 'reading captured packets' },
  'gir1.2-gst-rtsp-server-1.0': { why: 'cameras' },
  'python3-gi': { why: 'the program of the cameras' },
  'gstreamer1.0-plugins-bad': { why: 'RTP, G.711, H.265 and AAC of the cameras' },
  'gir1.2-gst-plugins-bad-1.0': { why: 'WebRTC of GStreamer, for WHIP and WHEP' },
  'gstreamer1.0-nice': { why: 'the ICE of that' },
  'gstreamer1.0-plugins-ugly': { why: 'H.264 of the cameras and of GStreamer' },
};

/** Competitors in the benchmarks, not needed by tests. */
const rivals = { janus: { program: 'janus', why: 'benchmarks beside another server' } };

function which(program) {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/lib/podman']) {
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

const about = (name) => packages[name] ?? rivals[name];

function isInstalled(name) {
  const { program } = about(name);
  return program === undefined ? spawnSync('dpkg', ['--status', name]).status === 0 : which(program) !== undefined;
}

/** Returns those of the packages that are not installed. */
export const missingPackages = (names) => names.filter((name) => !isInstalled(name));

/** Installs missing packages where possible. Returns those that are still missing. */
export function ensurePackages(names = Object.keys(packages)) {
  const missing = () => missingPackages(names);
  const before = missing();
  if (before.length === 0) return [];
  if (process.env.BLOOM_NO_INSTALL || !which('apt-get') || process.getuid?.() !== 0) return before;
  console.log('Installing Debian packages for the tests, because this is root (BLOOM_NO_INSTALL=1 skips it):');
  for (const name of before) console.log(`  ${name.padEnd(14)} ${about(name).why}`);
  apt('update');
  // One by one, so that a name missing from this release does not fail the others.
  for (const name of before) apt('install', '-y', '--no-install-recommends', name);
  return missing();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const left = ensurePackages(process.argv.length > 2 ? process.argv.slice(2) : undefined);
  if (left.length > 0) console.log(`Missing: ${left.join(' ')}. Install with: sudo apt-get install ${left.join(' ')}`);
}
