/** The process around a node: what it prints and how it ends. Runs the built program. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { DistributionNode } from '@bloom/distribution';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { PortMapperServer } from '@bloom/port-mapper';

const app = dirname(dirname(fileURLToPath(import.meta.url)));

const COOKIE = 'of a test';
/** Flags of a node that does not warm up. */
const COLD = [
  '--import',
  'data:text/javascript,import{setEnvironmentData}from"node:worker_threads";setEnvironmentData("bloom.cold",true)',
];

// Processes start slowly on a machine that other tests keep busy.
jest.setTimeout(60_000);

interface Program {
  child: ChildProcess;
  output: () => string;
  /** Resolves when the output contains the text. */
  says: (text: string) => Promise<void>;
  /** Exit code, or the signal that ended the process. */
  exited: Promise<number | string>;
}

let folder: string;
let running: Program[];
let ports: Record<string, string>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-main-'));
  running = [];
  ports = {
    JF_PORT: String(await freeTcpPort()),
    JF_METRICS_PORT: String(await freeTcpPort()),
    JF_WEBRTC_TURN_PORT_RANGE: '0-0',
    JF_MEDIA_WORKERS: '1',
  };
});
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ exited }) => exited));
  rmSync(folder, { recursive: true, force: true });
});

function run(env: Record<string, string>, args: string[] = [], flags: string[] = []): Program {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [...COLD, ...flags, join(app, 'dist/main.js'), ...args], {
    cwd: folder,
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      for (const look of waiting) look();
    });
  }
  const program: Program = {
    child,
    output: () => text,
    says: (wanted) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!text.includes(wanted)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        child.once('close', () => reject(new Error(`ended without "${wanted}":\n${text}`)));
        look();
      }),
    exited: new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))),
  };
  running.push(program);

  return program;
}

/** Runs a node until it serves. */
async function started(...args: Parameters<typeof run>): Promise<Program> {
  const program = run(...args);
  await program.says('The API is described at');
  return program;
}

test('keeps files of a node from other users of the machine, and follows the umask for its group', async () => {
  for (const [umask, mode] of [
    [0o022, 0o750],
    [0o077, 0o700],
  ] as const) {
    const before = process.umask(umask);
    const resources = join(folder, `resources-${umask}`);
    const program = run({ ...ports, JF_RESOURCES_BASE_PATH: resources, NODE_ENV: 'development' });
    process.umask(before);
    await program.says('The API is described at');
    const made = readdirSync(resources, { withFileTypes: true, recursive: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(made.length).toBeGreaterThan(0);
    expect(statSync(resources).mode & 0o777).toBe(mode);
    for (const { parentPath, path, name } of made)
      expect(statSync(join(parentPath ?? path, name)).mode & ~mode & 0o777).toBe(0);
    program.child.kill('SIGKILL');
    await program.exited;
  }
});

describe('a node without settings', () => {
  test('prints working next steps, and exits with 0 on SIGTERM', async () => {
    const program = run(ports);
    const url = `http://127.0.0.1:${ports['JF_PORT']}`;
    await program.says(`curl -X POST -H "Authorization: Bearer development" ${url}/room`);
    const created = await fetch(`${url}/room`, { method: 'POST', headers: { authorization: 'Bearer development' } });
    program.child.kill('SIGTERM');

    expect(created.status).toBe(201);
    expect(await program.exited).toBe(0);
    expect(program.output()).toContain(`listens on ${url}`);
    // One address, or several as people list them.
    expect(program.output()).toMatch(/clients reach (?:[^ ]+, )*(?:[^ ]+ and )?[^ ]+, UDP ports/);
    expect(program.output()).toContain(`Metrics: http://127.0.0.1:${ports['JF_METRICS_PORT']}/metrics`);
    expect(program.output()).toContain('node.closed');
  });
});

test('says in production that the dashboard is off, and which setting turns it on', async () => {
  const program = run({ ...ports, NODE_ENV: 'production', JF_SERVER_API_TOKEN: 'of-a-test' });
  await program.says('The dashboard is off; JF_DASHBOARD=true turns it on');
});

describe('signals', () => {
  test('ends a draining node immediately on a second signal', async () => {
    const program = await started({ ...ports, JF_DRAIN_TIMEOUT: '600' });
    const url = `http://127.0.0.1:${ports['JF_PORT']}/room`;
    await fetch(url, { method: 'POST', headers: { authorization: 'Bearer development' } });
    program.child.kill('SIGINT');
    await program.says('node.draining');
    program.child.kill('SIGTERM');

    expect(await program.exited).toBe(1);
    expect(program.output()).not.toContain('node.closed');
  });

  test('closes cleanly on a signal that arrives twice because it was sent to a process group', async () => {
    const program = await started({ ...ports, JF_DRAIN_TIMEOUT: '1' });
    const url = `http://127.0.0.1:${ports['JF_PORT']}/room`;
    await fetch(url, { method: 'POST', headers: { authorization: 'Bearer development' } });
    program.child.kill('SIGTERM');
    await program.says('node.draining');
    program.child.kill('SIGTERM');

    expect(await program.exited).toBe(0);
    expect(program.output()).toContain('node.closed');
  });
});

describe('a signal while the node starts', () => {
  test('closes the node cleanly once it has started', async () => {
    // A setting with a warning, which is logged before the node starts.
    const program = run({ ...ports, JF_LOG_LEVEL: 'x' });
    await program.says('info is used');
    program.child.kill('SIGTERM');

    expect(await program.exited).toBe(0);
    expect(program.output()).toContain('node.closing');
    expect(program.output()).toContain('node.closed');
  });
});

describe('a terminal that is closed', () => {
  test('closes the node cleanly', async () => {
    const program = await started(ports);
    program.child.kill('SIGHUP');

    expect(await program.exited).toBe(0);
    expect(program.output()).toContain('node.closed');
  });
});

test('writes every line as JSON with JSON logging, including Node.js warnings', async () => {
  const warn = 'data:text/javascript,process.on("SIGUSR2", () => process.emitWarning("an odd thing"))';
  const program = run({ ...ports, JF_STRUCTURED_LOGGING: 'true' }, [], ['--import', warn]);
  await program.says('metrics');
  program.child.kill('SIGUSR2');
  await program.says('an odd thing');
  const lines = program.output().trim().split('\n');
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({
      severity: 'warning',
      message: 'process.warning',
      metadata: { name: 'Warning', message: 'an odd thing' },
    }),
  );
});

/** Settings of a program that joins the cluster of a test. */
function memberSettings(alive: string, mapper: { port: number }): Record<string, string> {
  return {
    JF_DIST_ENABLED: 'true',
    JF_DIST_MODE: 'name',
    JF_DIST_NODE_NAME: `${alive}@127.0.0.1`,
    JF_DIST_COOKIE: COOKIE,
    JF_DIST_IP: '127.0.0.1',
    ERL_EPMD_PORT: String(mapper.port),
  };
}

/** Options of a node of that cluster in this process. */
const linkOptions = ({ port }: { port: number }) =>
  ({ mode: 'name', cookie: COOKIE, mapper: { port }, log: silentLog }) as const;

describe('a node that cannot start', () => {
  test('reports the failure in JSON if it logs in JSON', async () => {
    const program = run({ ...ports, JF_STRUCTURED_LOGGING: 'true', JF_METRICS_PORT: 'x' });
    expect(await program.exited).toBe(78);
    expect(JSON.parse(program.output())).toMatchObject({
      severity: 'error',
      message: expect.stringContaining('JF_METRICS_PORT="x"'),
      metadata: { variable: 'JF_METRICS_PORT' },
    });
  });

  test('names the faulty setting and its value', async () => {
    const program = run({ ...ports, JF_METRICS_PORT: '65536' });

    expect(await program.exited).toBe(78);
    expect(program.output()).toMatch(/JF_METRICS_PORT.*65536/);
  });

  test('requires a token in production', async () => {
    const program = run({ ...ports, NODE_ENV: 'production' });

    expect(await program.exited).toBe(78);
    expect(program.output()).toContain('JF_SERVER_API_TOKEN');
  });

  test('exits with 78 if no member speaks its protocol, and leaves the existing member running', async () => {
    const mapper = await PortMapperServer.open({ port: 0, log: silentLog });
    const spoken = { release: '99.0.0', protocols: { min: 99, max: 99 } };
    const member = await DistributionNode.start({ ...linkOptions(mapper), name: 'newer@127.0.0.1', spoken });
    try {
      const program = run({ ...ports, ...memberSettings('joins', mapper), JF_DIST_NODES: 'newer@127.0.0.1' });
      expect(await program.exited).toBe(78);
      expect(program.output()).toMatch(
        /node\.start_failed.*newer@127\.0\.0\.1 of release 99\.0\.0 speaks protocol 99, this node of release .* speaks protocols 1 to 3/s,
      );
      expect(program.output()).toContain('docs/guide/upgrading.md');
      expect(member.nodes()).toEqual([]);
    } finally {
      await member.stop();
      await mapper.close();
    }
  });

  test('exits with 78 if another node of the machine has its name', async () => {
    const mapper = await PortMapperServer.open({ port: 0, log: silentLog });
    const holder = await DistributionNode.start({ ...linkOptions(mapper), name: 'taken@127.0.0.1' });
    try {
      const program = run({ ...ports, ...memberSettings('taken', mapper) });
      expect(await program.exited).toBe(78);
      expect(program.output()).toContain(
        'a node called taken is already registered on this machine (JF_DIST_NODE_NAME)',
      );
    } finally {
      await holder.stop();
      await mapper.close();
    }
  });

  test('names the port that another program holds', async () => {
    const other = createServer().listen(Number(ports['JF_PORT']), '127.0.0.1');
    await once(other, 'listening');
    try {
      const program = run(ports);
      expect(await program.exited).toBe(1);
      expect(program.output()).toContain(`127.0.0.1:${ports['JF_PORT']}`);
    } finally {
      other.close();
    }
  });
});

describe('--print-config', () => {
  test('prints the effective settings without secrets, and starts nothing', async () => {
    const program = run({ ...ports, JF_SERVER_API_TOKEN: 'hide-me' }, ['--print-config']);

    expect(await program.exited).toBe(0);
    expect(program.output()).toMatch(new RegExp(`JF_PORT +${ports['JF_PORT']}`));
    expect(program.output()).not.toContain('hide-me');
    expect(program.output()).not.toContain('listens on');
  });
});

describe('--version', () => {
  test('prints version and commit, whatever the settings, and starts nothing', async () => {
    const program = run({ JF_PORT: 'wrong', JF_GIT_COMMIT: 'abc1234' }, ['--version']);

    expect(await program.exited).toBe(0);
    expect(program.output()).toMatch(/^Bloom \d+\.\d+\.\d+\S* \(abc1234\)\n$/);
  });
});

/** A flag for a program that runs this code on SIGUSR2. */
function onUsr2(code: string): string[] {
  return ['--import', `data:text/javascript,${encodeURIComponent(`process.on('SIGUSR2', () => { ${code} })`)}`];
}

describe('unhandled faults', () => {
  test.each([
    ['Promise.reject(new Error("boom"))', 'process.unhandled_rejection', /boom.*\n +Error: boom\n +at /s],
    ['setTimeout(() => { throw new Error("boom"); })', 'process.uncaught_exception', /boom.*\n +Error: boom\n +at /s],
    ['setTimeout(() => { throw "no error"; })', 'process.uncaught_exception', /no error/],
    ['import("file:///replaced/by/an/upgrade.js")', 'process.unhandled_rejection', /replaced\/by\/an\/upgrade\.js/],
  ])('are logged with their stack and end the process with 1: %s', async (fault, event, words) => {
    const program = await started(ports, [], onUsr2(fault));
    program.child.kill('SIGUSR2');

    expect(await program.exited).toBe(1);
    expect(program.output()).toContain(`[error] ${event}`);
    expect(program.output()).toMatch(words);
  });

  test('logs an exit without a given reason with its code', async () => {
    const program = await started(ports, [], onUsr2('process.exit(7)'));
    program.child.kill('SIGUSR2');

    expect(await program.exited).toBe(7);
    expect(program.output()).toContain('[error] process.exit code=7');
  });

  test('exits with an error when the event loop drains', async () => {
    const program = await started(ports, [], onUsr2('process.emit("beforeExit", 0)'));
    program.child.kill('SIGUSR2');

    expect(await program.exited).toBe(1);
    expect(program.output()).toContain('[error] process.nothing_left');
  });
});

describe('a closed output pipe', () => {
  test('costs only log lines, not the node', async () => {
    const program = await started({ ...ports, JF_LOG_LEVEL: 'debug' });
    for (const stream of [program.child.stdout, program.child.stderr]) stream?.destroy();
    const health = async () => {
      const headers = { authorization: 'Bearer development' };
      return (await fetch(`http://127.0.0.1:${ports['JF_PORT']}/health`, { headers })).status;
    };

    // Each request logs a line at this level.
    for (let request = 0; request < 5; request += 1) expect(await health()).toBe(200);
    program.child.kill('SIGTERM');
    expect(await program.exited).toBe(0);
  });
});
