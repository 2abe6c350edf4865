// `npm run cluster -- --nodes 3`: runs a cluster on this machine. Every node has its own ports and finds the others
// through the machine's port mapper: the one already on 4369, or one that ends with the cluster.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { root, setUp, withCommit } from './setup.mjs';

const DEFAULT_MAPPER_PORT = 4369;
const FIRST_PORT = 5002;
const FIRST_METRICS_PORT = 9568;
const FIRST_MEDIA_PORT = 50_000;
const MEDIA_PORTS_EACH = 20;
const MAX_NODES = 16;
const TOKEN = 'development';
const colours = [36, 33, 35, 32, 34, 31, 96, 93];

const usage = `Usage: npm run cluster -- [--nodes 3] [--port ${FIRST_PORT}]

  --nodes   how many, 2 to ${MAX_NODES}; default 3
  --port    HTTP port of the first node; the others take the next free ones

Settings of the nodes come from the environment (JF_*), as always, except names, ports, folders and the API token, \`${TOKEN}\`.`;

function readArguments() {
  try {
    const { values } = parseArgs({
      options: { nodes: { type: 'string', default: '3' }, port: { type: 'string' }, help: { type: 'boolean' } },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const count = Number(values.nodes);
    if (!Number.isInteger(count) || count < 2 || count > MAX_NODES) {
      throw new Error(`--nodes must be a number from 2 to ${MAX_NODES}, got ${values.nodes}`);
    }
    const port = Number(values.port ?? FIRST_PORT);
    if (!Number.isInteger(port) || port < 1 || port > 65_000) {
      throw new Error(`--port must be a port up to 65000, got ${values.port}`);
    }
    return { count, port };
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(64);
  }
}

function isFree(port) {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });
}

/** Returns the first free ports from `first` on, without duplicates. */
async function freePorts(first, count) {
  const found = [];
  for (let port = first; found.length < count; port += 1) {
    if (port > 65_535) throw new Error(`no ${count} free TCP ports from ${first} on`);
    if (await isFree(port)) found.push(port);
  }
  return found;
}

/**
 * Sends one request to the port mapper (110: list names, 107: exit if none is registered). Returns undefined without a
 * reply.
 */
function askMapper(port, request) {
  return new Promise((done) => {
    let text = '';
    const socket = connect({ port, host: '127.0.0.1', timeout: 2_000 }, () => socket.end(Buffer.from([0, 1, request])));
    socket.on('data', (data) => {
      // The names follow the mapper's port number, which takes four bytes.
      text += data.toString('latin1');
    });
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => done(text.length >= 4 || text === 'OK' || text === 'NO' ? text : undefined));
  });
}

/** `bloom1`, `bloom2` ...: skips names taken on this machine, such as by another cluster like this one. */
function freeNames(registered, count) {
  const taken = new Set([...registered.matchAll(/name (\S+) at port/g)].map((match) => match[1]));
  const found = [];
  for (let number = 1; found.length < count; number += 1) {
    if (!taken.has(`bloom${number}`)) found.push(`bloom${number}`);
  }
  return found;
}

async function health(node) {
  try {
    const answer = await fetch(`${node.url}/health`, { headers: { authorization: `Bearer ${TOKEN}` } });
    return (await answer.json()).data;
  } catch {
    return undefined;
  }
}

const { count, port: firstPort } = readArguments();
setUp();

const mapperPort = Number(process.env.ERL_EPMD_PORT ?? DEFAULT_MAPPER_PORT);
const registered = await askMapper(mapperPort, 110);
const mapperWasThere = registered !== undefined;
const env = withCommit(process.env);
const folder = mkdtempSync(join(tmpdir(), 'bloom-cluster-'));
const ports = await freePorts(firstPort, count);
const metricsPorts = await freePorts(Math.max(FIRST_METRICS_PORT, ports.at(-1) + 1), count);
const labels = freeNames(registered ?? '', count);
const names = labels.map((label) => `${label}@localhost`);
const nodes = ports.map((port, i) => ({
  label: labels[i],
  name: names[i],
  url: `http://127.0.0.1:${port}`,
  colour: process.stdout.isTTY ? colours[i % colours.length] : undefined,
  env: {
    ...env,
    JF_SERVER_API_TOKEN: TOKEN,
    JF_SECRET_KEY_BASE: process.env.JF_SECRET_KEY_BASE ?? 'a-local-cluster-and-nothing-else',
    JF_HOST: `127.0.0.1:${port}`,
    JF_PORT: String(port),
    JF_METRICS_PORT: String(metricsPorts[i]),
    JF_MEDIA_WORKERS: process.env.JF_MEDIA_WORKERS ?? '1',
    JF_WEBRTC_TURN_PORT_RANGE: `${FIRST_MEDIA_PORT + i * MEDIA_PORTS_EACH}-${FIRST_MEDIA_PORT + (i + 1) * MEDIA_PORTS_EACH - 1}`,
    JF_RESOURCES_BASE_PATH: join(folder, labels[i]),
    JF_DIST_ENABLED: 'true',
    JF_DIST_MODE: 'sname',
    JF_DIST_STRATEGY_NAME: 'NODES_LIST',
    JF_DIST_NODE_NAME: names[i],
    JF_DIST_NODES: names.join(' '),
    // The default cookie is public, so listen on loopback only.
    JF_DIST_IP: process.env.JF_DIST_IP ?? '127.0.0.1',
    JF_DIST_COOKIE: process.env.JF_DIST_COOKIE ?? 'bloom_cookie',
    ERL_EPMD_PORT: String(mapperPort),
  },
}));

/** Forwards whole lines, prefixed with the node's name. */
function label(stream, node) {
  const prefix = node.colour === undefined ? `${node.label} | ` : `\u001b[${node.colour}m${node.label} |\u001b[0m `;
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) console.log(prefix + line);
  });
  stream.on('end', () => {
    if (rest !== '') console.log(prefix + rest);
  });
}

let closing = false;
const running = new Set();
for (const node of nodes) {
  const main = join(root, 'apps', 'bloom', 'dist', 'main.js');
  // A separate session, so that Ctrl-C reaches the nodes through us, and only once.
  const child = spawn(process.execPath, [main], {
    env: node.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  label(child.stdout, node);
  label(child.stderr, node);
  child.on('exit', (code, signal) => {
    running.delete(child);
    if (!closing) console.log(`${node.label} ended (${signal ?? code}); the others go on`);
    if (running.size === 0) void finish(closing ? 0 : 1);
  });
}

function stop(signal) {
  // The second Ctrl-C ends them immediately, as a second signal does for a node.
  if (!closing) console.log(`\nStopping ${running.size} nodes (${signal}) ...`);
  closing = true;
  for (const child of running) child.kill('SIGTERM');
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Removes what the nodes leave behind: their files, and the port mapper if they started it. */
async function finish(status) {
  rmSync(folder, { recursive: true, force: true });
  // It refuses while later nodes are registered, because they need it. Names are dropped when sockets close.
  for (let attempt = 0; !mapperWasThere && attempt < 20; attempt += 1) {
    const answer = await askMapper(mapperPort, 107);
    if (answer !== 'NO') break;
    await delay(100);
  }
  process.exit(status);
}

async function tellWhenComplete() {
  while (!closing) {
    const reports = await Promise.all(nodes.map(health));
    if (reports.every((report) => report?.distribution.nodesInCluster === count)) break;
    await delay(250);
  }
  if (closing) return;
  const auth = `-H 'Authorization: Bearer ${TOKEN}'`;
  const last = nodes.at(-1);
  const cookie = process.env.JF_DIST_COOKIE === undefined ? 'bloom_cookie' : '<your JF_DIST_COOKIE>';
  const epmd = mapperPort === DEFAULT_MAPPER_PORT ? '' : `ERL_EPMD_PORT=${mapperPort} `;
  console.log(`
${count} nodes are one cluster:
${nodes.map((node) => `  ${node.name.padEnd(24)} ${node.url}   metrics http://127.0.0.1:${node.env.JF_METRICS_PORT}/metrics`).join('\n')}

Each room goes to the least-loaded node, and every node answers for every room:
  curl -X POST ${auth} ${nodes[0].url}/room
  curl ${auth} '${last.url}/room?scope=cluster'
  curl ${auth} ${last.url}/health

From an Erlang shell:
  ${epmd}erl -sname shell -setcookie ${cookie}
  1> rpc:call('${names[0]}', bloom, nodes, []).

Ctrl-C stops them all.
`);
}

await tellWhenComplete();
