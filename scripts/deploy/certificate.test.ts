/** Tests deploy/docker/certificate.sh, which passes the certificates that certbot fetches to a node. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { loadTls } from '@bloom/config';
import { until } from '@bloom/time/testing';
import { root } from '../setup.mjs';

/** Writes the files that certbot leaves for its name, and fails without one. No authority issues certificates here. */
const CERTBOT = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --config-dir) folder=$2;; --cert-name) name=$2;; esac
  shift
done
[ -n "$name" ] || exit 1
mkdir -p "$folder/live/$name" && cd "$folder/live/$name" || exit 1
exec openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$name" \\
  -keyout privkey.pem -out fullchain.pem 2>/dev/null
`;

let folder: string;
let child: ChildProcess | undefined;
let target: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certificate-'));
  target = join(folder, 'certificate');
  mkdirSync(target);
  writeFileSync(join(folder, 'certbot'), CERTBOT);
  chmodSync(join(folder, 'certbot'), 0o755);
});
afterEach(() => {
  if (child?.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  rmSync(folder, { recursive: true });
});

function start(domain: string): ChildProcess {
  return spawn('/bin/sh', [join(root, 'deploy/docker/certificate.sh')], {
    env: {
      PATH: `${folder}:${process.env['PATH']}`,
      BLOOM_DOMAIN: domain,
      CERTBOT_FOLDER: join(folder, 'certbot-files'),
      CERTIFICATE_FOLDER: target,
    },
    stdio: 'ignore',
    detached: true,
  });
}

const able = process.getuid?.() === 0 && spawnSync('openssl', ['version']).status === 0;
(able ? test : test.skip)(
  `a node gets a pair that only it can read${able ? '' : ' [needs root and openssl]'}`,
  async () => {
    child = start('media.example.com');
    const [keyPath, certPath] = [join(target, 'key.pem'), join(target, 'cert.pem')];
    await until(() => existsSync(certPath));
    expect(loadTls({ keyPath, certPath, readFile: (path) => readFileSync(path) })).not.toBeNull();
    const { mode, uid } = statSync(keyPath);
    expect((mode & 0o777).toString(8)).toBe('400');
    expect(uid).toBe(1000);
    const ended = once(child, 'exit');
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    expect(await ended).toEqual([0, null]);
  },
);
