/**
 * The benchmark runs in a separate network namespace: Janus gathers no loopback candidate, so all programs use the
 * address of an interface, which no other traffic passes.
 */
import { spawnSync } from 'node:child_process';

/** This machine's address inside the namespace. */
export const address = '10.77.251.1';

const marker = 'BLOOM_BENCH_INSIDE';

/** Runs this program again inside the namespace and exits with its status. Returns if already inside. */
export function enterPrivateNetwork(): void {
  if (process.env[marker]) return;
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    console.error('The benchmark needs Linux and root: it runs in a separate network namespace.');
    process.exit(1);
  }
  const setUp = [
    'ip link set lo up',
    'ip link add eth0 type veth peer name eth1',
    `ip addr add ${address}/24 dev eth0`,
    'ip link set eth0 up',
    'ip link set eth1 up',
    'exec "$@"',
  ].join(' && ');
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const { status, error } = spawnSync('unshare', ['--net', 'sh', '-c', setUp, 'sh', ...again], {
    stdio: 'inherit',
    env: { ...process.env, [marker]: '1' },
  });
  if (error) console.error(`unshare could not be started: ${error.message}`);
  process.exit(status ?? 1);
}
