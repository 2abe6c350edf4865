import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { freePorts, type Node, type Program, runProgram, startProgram } from './support/program.js';
import { receiveWebhooks } from './support/webhook-receiver.js';

// Nodes start on a machine busy with other tests.
jest.setTimeout(120_000);

const programs: Program[] = [];
const run = (env: Readonly<Record<string, string>>, args: string[] = []): Program => {
  const program = runProgram(env, args);
  programs.push(program);

  return program;
};
afterAll(() => Promise.all(programs.map((program) => program.dispose())));

describe('a wrong setting', () => {
  /** Occupied ports: a node that tried to open one would report it. */
  const taken = [createServer(), createServer()];
  let ports: Record<string, string>;

  beforeAll(async () => {
    for (const server of taken) {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
    }
    const [http = 0, metrics = 0] = taken.map((server) => (server.address() as AddressInfo).port);
    ports = { JF_PORT: String(http), JF_METRICS_PORT: String(metrics), JF_WEBRTC_TURN_PORT_RANGE: '0-0' };
  });
  afterAll(() => {
    for (const server of taken) server.close();
  });

  const cases: [Record<string, string>, RegExp][] = [
    [{ JF_PORT: '4000abc' }, /JF_PORT.*4000abc/],
    [{ JF_HOST: 'https://media.example' }, /JF_HOST.*https:\/\/media\.example/],
    [{ NODE_ENV: 'production' }, /JF_SERVER_API_TOKEN/],
    [{ JF_WEBRTC_USED: 'yes' }, /JF_WEBRTC_USED.*yes/],
    [{ JF_SIP_USED: 'true' }, /JF_SIP_IP/],
    [{ JF_SSL_KEY_PATH: '/nowhere/key.pem' }, /JF_SSL_CERT_PATH.*JF_SSL_KEY_PATH|JF_SSL_KEY_PATH.*JF_SSL_CERT_PATH/],
    [{ JF_S3_BUCKET: 'b' }, /JF_S3_REGION.*JF_S3_ACCESS_KEY_ID.*JF_S3_SECRET_ACCESS_KEY/],
    [{ JF_DIST_MODE: 'full' }, /JF_DIST_MODE.*full/],
    [{ JF_DIST_ENABLED: 'true', JF_DIST_NODE_NAME: 'nobody' }, /JF_DIST_NODE_NAME.*nobody/],
    [{ JF_DRAIN_TIMEOUT: '-1' }, /JF_DRAIN_TIMEOUT.*-1/],
  ];

  test('names a wrong setting with its value before any port is opened, and exits with 78', async () => {
    const width = 5;
    for (let at = 0; at < cases.length; at += width) {
      const some = cases
        .slice(at, at + width)
        .map(([env, wanted]) => ({ env, wanted, program: run({ ...ports, ...env }) }));
      for (const { env, wanted, program } of some) {
        expect([env, await program.exited]).toEqual([env, 78]);
        expect(program.output()).toMatch(wanted);
        expect(program.output()).not.toMatch(/EADDRINUSE|listens on/);
      }
    }
  });

  test('exits with 78 for a wrong setting, but with 1 for a taken port, whose address it names', async () => {
    const program = run({ ...ports, JF_METRICS_PORT: (await freePorts()).env['JF_METRICS_PORT'] ?? '' });
    const metrics = run({ ...ports, JF_PORT: (await freePorts()).env['JF_PORT'] ?? '' });
    expect(await program.exited).toBe(1);
    expect(program.output()).toContain(`127.0.0.1:${ports['JF_PORT']}`);
    expect(await metrics.exited).toBe(1);
    expect(metrics.output()).toContain(`127.0.0.1:${ports['JF_METRICS_PORT']}`);
    expect(metrics.output()).not.toContain('listens on');
  });

  test('names an unknown host name before any port is opened', async () => {
    const dns = {
      JF_DIST_ENABLED: 'true',
      JF_DIST_MODE: 'name',
      JF_DIST_STRATEGY_NAME: 'DNS',
      JF_DIST_QUERY: 'x.invalid',
    };
    const program = run({ ...ports, ...dns, JF_DIST_NODE_NAME: 'app@nowhere.invalid' });
    // Even before the polling interval, which is checked last.
    const both = run({ ...ports, ...dns, JF_DIST_NODE_NAME: 'app@nowhere.invalid', JF_DIST_POLLING_INTERVAL: '0' });
    const last = run({ ...ports, ...dns, JF_DIST_NODE_NAME: 'app@127.0.0.1', JF_DIST_POLLING_INTERVAL: '0' });
    expect(await program.exited).toBe(78);
    expect(program.output()).toMatch(/nowhere\.invalid.*JF_DIST_NODE_NAME/);
    expect(await both.exited).toBe(78);
    expect(await last.exited).toBe(78);
    expect(both.output()).toMatch(/nowhere\.invalid.*JF_DIST_NODE_NAME/);
    expect(last.output()).toMatch(/JF_DIST_POLLING_INTERVAL.*"0"/);
    expect(program.output()).not.toMatch(/EADDRINUSE|listens on/);
  });

  test('names a wrong setting in a file with a key or certificate', async () => {
    const program = run({}, ['--print-config']);
    await program.exited;
    const [key, cert] = [join(program.folder, 'key.pem'), join(program.folder, 'cert.pem')];
    for (const path of [key, cert]) writeFileSync(path, 'not a certificate');
    const wrong = run({ ...ports, JF_SSL_KEY_PATH: key, JF_SSL_CERT_PATH: cert });
    expect(await wrong.exited).toBe(78);
    expect(wrong.output()).toMatch(/JF_SSL_(KEY|CERT)_PATH/);
  });
});

describe('--print-config', () => {
  const secrets = {
    JF_SERVER_API_TOKEN: 'secret-token-1',
    JF_SECRET_KEY_BASE: 'secret-base-2',
    JF_DIST_COOKIE: 'secret-cookie-3',
    JF_WEBHOOK_SECRET: 'secret-hook-4',
    JF_S3_ACCESS_KEY_ID: 'secret-id-5',
    JF_S3_SECRET_ACCESS_KEY: 'secret-key-6',
  };

  test('prints every setting with its origin, secrets masked, and starts nothing', async () => {
    const program = run(
      {
        ...secrets,
        JF_DIST_ENABLED: 'true',
        JF_S3_BUCKET: 'b',
        JF_S3_REGION: 'r',
        JF_PORT: '6001',
        FJ_HOST: 'h:1',
        JF_RECORDING_USED: 'FALSE',
      },
      ['--print-config'],
    );
    expect(await program.exited).toBe(0);
    const rows = new Map(
      program
        .output()
        .split('\n')
        .map((line) => line.split(/ {2,}/))
        .map(([name = '', value = '', origin = '']) => [name, [value, origin.trim()]]),
    );
    for (const name of Object.keys(secrets)) expect([name, rows.get(name)?.[0]]).toEqual([name, '********']);
    for (const secret of Object.values(secrets)) expect(program.output()).not.toContain(secret);
    expect(rows.get('JF_PORT')).toEqual(['6001', expect.stringMatching(/env/i)]);
    expect(rows.get('JF_HOST')).toEqual(['h:1', 'FJ_HOST']);
    expect(rows.get('JF_IP')).toEqual(['127.0.0.1', expect.stringMatching(/default/i)]);
    expect(rows.get('JF_RECORDING_USED')?.[0]).toMatch(/^false$/i);
    expect(rows.get('JF_METRICS_PORT')?.[0]).toBe('9568');
    expect(rows.get('JF_SSL_KEY_PATH')?.[0]).toBe('-');
    expect(program.output()).not.toContain('listens on');
  });

  test('fails for wrong settings as the start does', async () => {
    const program = run({ JF_PORT: '0' }, ['--print-config']);
    expect(await program.exited).toBe(78);
    expect(program.output()).toMatch(/JF_PORT.*0/);
  });
});

describe('names', () => {
  test('hints at names that nearly match, notes aliases, and ignores obsolete and foreign names', async () => {
    const program = await startProgram({
      JF_SERVER_API_TOKN: 'x',
      JF_INTEGRATED_TURN_IP: 'garbage',
      JF_OUTPUT_BASE_PATH: '/nowhere',
      FJ_COMPONENTS_USED: 'hls sip',
      FJ_LOG_LEVEL: 'debug',
      JF_ENTIRELY_SOMETHING_ELSE: 'x',
    });
    programs.push(program);
    await fetch(`${program.url}/health`);
    await program.says('[debug]');
    const output = program.output();
    expect(output).toContain('JF_SERVER_API_TOKN is not known and has no effect; did you mean JF_SERVER_API_TOKEN?');
    expect(output).toContain('FJ_LOG_LEVEL is read as JF_LOG_LEVEL');
    expect(output).toMatch(/FJ_COMPONENTS_USED is not read: JF_SIP_USED/);
    for (const silent of ['JF_INTEGRATED_TURN_IP', 'JF_OUTPUT_BASE_PATH', 'JF_ENTIRELY']) {
      expect(output).not.toContain(silent);
    }
  });
});

describe('a setting', () => {
  const authorized = { authorization: 'Bearer development', 'content-type': 'application/json' };
  const start = async (env: Readonly<Record<string, string>>): Promise<Node> => {
    const node = await startProgram(env);
    programs.push(node);
    return node;
  };

  test('opens only streams and recordings to requests without a token', async () => {
    const statuses = async (env: Readonly<Record<string, string>>): Promise<number[]> => {
      const node = await start(env);
      const recording = join(node.folder, 'bloom_resources', 'recordings', 'monday');
      mkdirSync(recording, { recursive: true });
      writeFileSync(join(recording, 'index.m3u8'), '#EXTM3U\n');
      const paths = ['/recording/monday/index.m3u8', '/hls/nowhere/index.m3u8', '/recording', '/room'];
      return Promise.all(paths.map(async (path) => (await fetch(`${node.url}${path}`)).status));
    };

    expect(await statuses({})).toEqual([401, 401, 401, 401]);
    expect(await statuses({ JF_PUBLIC_MEDIA_FILES: 'true' })).toEqual([200, 404, 401, 401]);
  });

  test.each([
    ['0', ['roomCreated', 'roomDeleted']],
    ['2', ['roomCreated', 'roomCreated', 'roomCreated', 'roomDeleted']],
  ])('sends an event again as often as configured with %s webhook retries', async (retries, expected) => {
    const receiver = await receiveWebhooks(({ type }) => ({
      status: type === 'roomCreated' && receiver.types().length <= 2 ? 503 : 200,
    }));
    try {
      const node = await start({ JF_WEBHOOK_RETRIES: retries });
      const body = JSON.stringify({ roomId: 'hooked', webhookUrl: receiver.url });
      await fetch(`${node.url}/room`, { method: 'POST', headers: authorized, body });
      await fetch(`${node.url}/room/hooked`, { method: 'DELETE', headers: authorized });
      await receiver.until('roomDeleted');
      expect(receiver.types()).toEqual(expected);
    } finally {
      await receiver.close();
    }
  });
});

describe('the log', () => {
  test('lists at the start what runs where, as text or JSON lines', async () => {
    const text = await startProgram({ JF_GIT_COMMIT: 'abc1234' });
    const json = await startProgram({ JF_STRUCTURED_LOGGING: 'TRUE', JF_GIT_COMMIT: 'abc1234' });
    programs.push(text, json);
    for (const node of [text, json]) {
      expect(node.output()).toMatch(/Bloom \d+\.\d+\.\d+ \(abc1234\) listens on/);
      expect(node.output()).toContain('Distribution is off');
      expect(node.output()).toContain('WebRTC: clients reach 127.0.0.1');
      expect(node.output()).toContain(`${node.metricsUrl}/metrics`);
    }
    await fetch(`${json.url}/room/nobody`);
    const lines = json.output().trim().split('\n');
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) {
      expect(JSON.parse(line)).toEqual({
        time: expect.any(String),
        severity: expect.stringMatching(/^(debug|info|warning|error)$/),
        message: expect.any(String),
        metadata: expect.any(Object),
      });
    }
  });
});
