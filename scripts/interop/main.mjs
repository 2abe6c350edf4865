// `npm run test:interop`: runs third-party tools, each with its own toolchain, against a node of this checkout. A
// missing tool is skipped, loudly. Ends with `N passed, N failed, N skipped`.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root, setUp } from '../setup.mjs';
import { fishjamJsSdk } from './fishjam-js-sdk.mjs';
import { fishjamSdk } from './fishjam-sdk.mjs';
import { helm } from './helm.mjs';
import { jellyfishSdk } from './jellyfish-sdk.mjs';
import { livekitCli } from './livekit-cli.mjs';
import { livekitGo, livekitPython } from './livekit.mjs';
import { schemathesis } from './schemathesis.mjs';

const TOKEN = 'token-of-the-interop-tests';
const READY_MS = 60_000;

/**
 * @typedef {object} Node
 * @property {string} url
 * @property {string} token of the API
 *
 * @typedef {object} Check
 * @property {string} title says what holds
 * @property {() => string | undefined} missing what the machine lacks, if anything
 * @property {Record<string, string>} [env] further settings of the node
 * @property {number} [nodes] size of its cluster, default 1
 * @property {(node: Node) => Promise<string | undefined>} run resolves with what is wrong, if anything
 */

/** @type {Check[]} */
const checks = [jellyfishSdk, fishjamSdk, fishjamJsSdk, livekitPython, livekitGo, livekitCli, helm, schemathesis];

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** @param {Record<string, string>} env */
async function startNode(env) {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-interop-'));
  const [port, metricsPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [join(root, 'apps', 'bloom', 'dist', 'main.js')], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      JF_PORT: String(port),
      JF_METRICS_PORT: String(metricsPort),
      JF_SERVER_API_TOKEN: TOKEN,
      JF_WEBRTC_TURN_PORT_RANGE: '0-0',
      JF_MEDIA_WORKERS: '1',
      JF_RESOURCES_BASE_PATH: join(folder, 'resources'),
      JF_LOG_LEVEL: 'error',
      ...env,
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const close = () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  for (const until = Date.now() + READY_MS; ; await delay(100)) {
    const ready = await fetch(`${url}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (ready) return { url, token: TOKEN, close };
    if (child.exitCode !== null || Date.now() > until) {
      close();
      throw new Error('the node did not start');
    }
  }
}

/** Starts the nodes of a cluster with a port mapper of its own. Returns the first one, which closes all. */
async function startCluster(size, env) {
  const mapperPort = String(await freePort());
  const mapper = spawn(process.execPath, [join(root, 'apps', 'port-mapper', 'dist', 'main.js')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH, ERL_EPMD_PORT: mapperPort },
  });
  const names = Array.from({ length: size }, (_, i) => `interop${i}@127.0.0.1`);
  const nodes = [];
  const close = () => {
    for (const node of nodes) node.close();
    mapper.kill('SIGKILL');
  };
  try {
    for (const name of names) {
      const member = {
        JF_DIST_ENABLED: 'true',
        JF_DIST_MODE: 'name',
        JF_DIST_IP: '127.0.0.1',
        JF_DIST_NODE_NAME: name,
        JF_DIST_NODES: names.join(' '),
        JF_DIST_COOKIE: 'cookie-of-the-interop-tests',
        JF_SECRET_KEY_BASE: 'a-key-base-of-the-interop-tests-with-64-characters-or-more-than-that',
        ERL_EPMD_PORT: mapperPort,
      };
      nodes.push(await startNode({ ...member, ...env }));
    }
  } catch (error) {
    close();
    throw error;
  }

  return { ...nodes[0], close };
}

setUp();
const count = { passed: 0, failed: 0, skipped: 0 };
for (const { title, missing, env = {}, nodes = 1, run } of checks) {
  const lack = missing();
  if (lack !== undefined) {
    console.warn(`*** SKIPPED: ${title} [needs ${lack}]`);
    count.skipped += 1;
    continue;
  }
  const node = nodes === 1 ? await startNode(env) : await startCluster(nodes, env);
  try {
    const fault = await run(node);
    console.log(`${fault === undefined ? 'ok    ' : 'FAILED'} ${title}`);
    if (fault !== undefined) console.error(fault);
    count[fault === undefined ? 'passed' : 'failed'] += 1;
  } finally {
    node.close();
  }
}
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exit(count.failed === 0 ? 0 : 1);
