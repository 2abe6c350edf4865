import { describe, expect, test } from '@jest/globals';
import { secretValues } from './load-config.js';
import { failure, load, rejects, settings } from './testing/loading.js';
import { VARIABLES } from './variables.js';

const production = { NODE_ENV: 'production', JF_SERVER_API_TOKEN: 'token-of-the-api' };
const distributed = { JF_DIST_ENABLED: 'true', JF_DIST_NODES: 'bloom@other' };
const dns = {
  JF_DIST_ENABLED: 'true',
  JF_DIST_MODE: 'name',
  JF_DIST_STRATEGY_NAME: 'DNS',
  JF_DIST_QUERY: 'sfu.internal',
};

describe('without any variable', () => {
  test('applies the documented defaults in the development profile', () => {
    expect(settings()).toEqual({
      profile: 'development',
      gitCommit: 'dev',
      resourcesPath: '/srv/app/bloom_resources',
      http: {
        ip: '127.0.0.1',
        port: 5002,
        host: '127.0.0.1:5002',
        apiToken: 'development',
        secretKeyBase: Buffer.alloc(48, 7).toString('base64'),
        checkOrigin: { kind: 'any' },
        publicMediaFiles: false,
        trustedProxies: [],
        proxyProtocol: false,
        tls: null,
      },
      logging: { structured: false, level: 'info' },
      webrtc: {
        turnIp: '127.0.0.1',
        turnListenIp: '127.0.0.1',
        more: 'machine',
        second: null,
        turnPortRange: { min: 50_000, max: 59_999 },
        advertisedPorts: null,
        turnTlsHost: '127.0.0.1',
        turnTcpPort: null,
        turnTlsPort: null,
        turnTlsOnHttp: null,
        stunServer: null,
      },
      mediaWorkers: 6,
      sip: null,
      recording: { enabled: true, s3: null, s3PathPrefix: null, s3Endpoint: null },
      metrics: { ip: '127.0.0.1', port: 9568, webrtcIntervalMs: 1000, roomIntervalMs: 10_000, compat: false },
      webhooks: { retries: 0, secret: null },
      cluster: null,
      drainTimeout: 0,
      drainMode: 'wait',
      inspection: 'full',
      livekit: null,
      dashboard: true,
      runtimePath: null,
    });
    expect(load().warnings).toEqual([]);
  });

  test('listens on port 4002 in the test profile', () => {
    expect(settings({ NODE_ENV: 'test' }).http.port).toBe(4002);
    expect(settings({ NODE_ENV: 'test' }).http.apiToken).toBe('development');
  });

  test('treats any other NODE_ENV as the development profile', () => {
    expect(settings({ NODE_ENV: 'staging' }).profile).toBe('development');
  });

  test('requires a token, listens on 8080 and checks origins in the production profile', () => {
    expect(failure({ NODE_ENV: 'production' }).message).toContain('JF_SERVER_API_TOKEN is not set');
    expect(settings(production).http.port).toBe(8080);
    expect(settings(production).http.checkOrigin).toEqual({ kind: 'host' });
  });
});

describe('grammars', () => {
  test.each(['JF_WEBRTC_USED', 'JF_SIP_USED', 'JF_RECORDING_USED', 'JF_STRUCTURED_LOGGING', 'JF_PUBLIC_MEDIA_FILES'])(
    'accepts %s as a boolean in any letter case and nothing else',
    (name) => {
      const rest = { JF_SIP_IP: '10.0.0.1' };
      for (const value of ['true', 'TRUE', 'True', 'false', 'FALSE'])
        expect(() => load({ ...rest, [name]: value })).not.toThrow();
      rejects(name, ['', '1', 'yes', 'true ', 'falsch'], rest);
    },
  );

  test('accepts true or false for JF_DIST_ENABLED, and disables distribution with a warning on any other word', () => {
    for (const value of ['true', 'TRUE'])
      expect(settings({ ...distributed, JF_DIST_ENABLED: value }).cluster).not.toBeNull();
    for (const value of ['false', 'False', '']) {
      const { settings: loaded, warnings } = load({ JF_DIST_ENABLED: value });
      expect(loaded.cluster).toBeNull();
      expect(warnings).toEqual([]);
    }
    for (const value of ['1', 'yes', 'true ']) {
      const { settings: loaded, warnings } = load({ JF_DIST_ENABLED: value });
      expect(loaded.cluster).toBeNull();
      expect(warnings).toEqual([
        {
          variable: 'JF_DIST_ENABLED',
          message: `JF_DIST_ENABLED=${JSON.stringify(value)} is neither true nor false; distribution is off`,
        },
      ]);
    }
  });

  test('accepts a list of addresses and CIDR ranges for JF_TRUSTED_PROXIES', () => {
    const JF_TRUSTED_PROXIES = '10.0.0.0/8 192.0.2.1 fd00::/8 2001:db8::1/128';
    expect(settings({ JF_TRUSTED_PROXIES }).http.trustedProxies).toEqual(JF_TRUSTED_PROXIES.split(' '));
    rejects('JF_TRUSTED_PROXIES', [
      'proxy.example',
      '10.0.0.0/33',
      '10.0.0.0/',
      '/8',
      '10.0.0.1,10.0.0.2',
      'fe80::1%eth0',
    ]);
  });

  test('requires JF_TRUSTED_PROXIES for JF_PROXY_PROTOCOL', () => {
    expect(failure({ JF_PROXY_PROTOCOL: 'true' }).variable).toBe('JF_TRUSTED_PROXIES');
    expect(settings({ JF_PROXY_PROTOCOL: 'true', JF_TRUSTED_PROXIES: '10.0.0.1' }).http.proxyProtocol).toBe(true);
  });

  test('refuses the path segments . and .. in JF_S3_PATH_PREFIX', () => {
    expect(settings({ JF_S3_PATH_PREFIX: '/calls/..2026/' }).recording.s3PathPrefix).toBe('/calls/..2026/');
    rejects('JF_S3_PATH_PREFIX', ['../a', 'a/../b', '.', 'a/..']);
  });

  test.each(['JF_IP', 'JF_METRICS_IP', 'JF_WEBRTC_TURN_LISTEN_IP'])(
    'accepts a literal IPv4 or IPv6 address for %s, neither a host name nor an empty value',
    (name) => {
      for (const value of ['0.0.0.0', '10.1.2.3', '::', '2001:db8::1'])
        expect(() => load({ [name]: value, JF_SERVER_API_TOKEN: 'token' })).not.toThrow();
      rejects(name, ['', 'localhost', '10.0.0', '10.0.0.256', '[::1]', '1.2.3.4 ']);
    },
  );

  test.each(['JF_PORT', 'JF_METRICS_PORT', 'JF_WEBRTC_TURN_TCP_PORT'])(
    'accepts 1..65535 without trailing junk for %s',
    (name) => {
      for (const value of ['1', '8080', '65535']) expect(() => load({ [name]: value })).not.toThrow();
      rejects(name, ['', '0', '65536', '-1', 'text', '4000abc', '1e3', ' 80', '80.0', '999999999999999999999']);
    },
  );

  test('accepts two ports in ascending order for JF_WEBRTC_TURN_PORT_RANGE', () => {
    expect(settings({ JF_WEBRTC_TURN_PORT_RANGE: '0-65535' }).webrtc?.turnPortRange).toEqual({ min: 0, max: 65_535 });
    expect(settings({ JF_WEBRTC_TURN_PORT_RANGE: '7-7' }).webrtc?.turnPortRange).toEqual({ min: 7, max: 7 });
    rejects('JF_WEBRTC_TURN_PORT_RANGE', [
      '',
      '50000-65536',
      '-1-65536',
      '60000-50000',
      '50000',
      'a-b',
      '1-2-3',
      '1 - 2',
    ]);
  });

  test.each(['JF_WEBRTC_METRICS_INTERVAL_MS', 'JF_ROOM_METRICS_INTERVAL_MS', 'JF_MEDIA_WORKERS'])(
    'accepts an integer of at least 1 for %s',
    (name) => {
      expect(() => load({ [name]: '50' })).not.toThrow();
      rejects(name, ['', '0', '-25', 'abcd', '1.5', '5s']);
    },
  );

  test('requires the certificate of the HTTPS listener for TURN over TLS', () => {
    const { variable, message } = failure({ JF_WEBRTC_TURN_TLS_PORT: '443' });
    expect(variable).toBe('JF_SSL_KEY_PATH');
    expect(message).toContain('JF_WEBRTC_TURN_TLS_PORT=443');
    rejects('JF_WEBRTC_TURN_TLS_PORT', ['', '0', '65536', 'x']);
  });

  test.each(['JF_WEBHOOK_RETRIES', 'JF_DRAIN_TIMEOUT'])('%s is an integer of at least 0', (name) => {
    expect(() => load({ [name]: '0' })).not.toThrow();
    rejects(name, ['', '-1', 'many']);
  });

  test('accepts one of its three words for JF_INSPECTION', () => {
    expect(settings({ JF_INSPECTION: 'read' }).inspection).toBe('read');
    expect(settings({ JF_INSPECTION: '' }).inspection).toBe('full');
    expect(settings(production)).toMatchObject({ inspection: 'read', dashboard: false });
    expect(settings({ ...production, JF_DASHBOARD: 'guests' }).dashboard).toBe('guests');
    expect(settings({ ...production, JF_DASHBOARD: 'TRUE' }).dashboard).toBe(true);
    expect(settings({ ...production, JF_INSPECTION: 'full' }).inspection).toBe('full');
    expect(settings({ XDG_RUNTIME_DIR: '/run/user/7' }).runtimePath).toBe('/run/user/7');
    rejects('JF_INSPECTION', ['FULL', 'yes']);
  });

  test('treats a text that is set but empty as unset', () => {
    const empty = ['JF_HOST', 'JF_SECRET_KEY_BASE', 'JF_CHECK_ORIGIN', 'JF_RESOURCES_BASE_PATH', 'JF_GIT_COMMIT'];
    const s3 = ['JF_S3_BUCKET', 'JF_S3_REGION', 'JF_S3_ACCESS_KEY_ID', 'JF_S3_SECRET_ACCESS_KEY', 'JF_S3_PATH_PREFIX'];
    const rest = [
      'JF_S3_ENDPOINT',
      'JF_SSL_KEY_PATH',
      'JF_SSL_CERT_PATH',
      'JF_WEBHOOK_SECRET',
      'JF_DIST_MODE',
      'JF_LOG_LEVEL',
    ];
    const env = Object.fromEntries([...empty, ...s3, ...rest].map((name) => [name, '']));

    expect(load(env)).toEqual(load());
  });
});

describe('identity and security', () => {
  test('defaults JF_HOST to IP address and port, with an IPv6 address in brackets', () => {
    expect(settings({ JF_IP: '::1', JF_PORT: '7000' }).http.host).toBe('[::1]:7000');
  });

  test.each([
    ['example.com', 'example.com'],
    ['example.com:4000', 'example.com:4000'],
    ['example.com/media', 'example.com/media'],
    ['example.com:4000/media/', 'example.com:4000/media'],
    ['[2001:db8::1]:80', '[2001:db8::1]:80'],
    ['localhost:5002/', 'localhost:5002'],
  ])('uses JF_HOST=%s as %s', (given, used) => {
    expect(settings({ JF_HOST: given }).http.host).toBe(used);
  });

  test('refuses to start with a JF_HOST with a scheme, blanks or an odd port', () => {
    rejects('JF_HOST', [
      'http://example.com',
      'a b',
      'example.com:port',
      'example.com:',
      'example.com:70000',
      '::1',
      '[zz]:1',
      ':80',
      '/path',
      'host name',
    ]);
  });

  test('refuses to start with an empty token in every profile', () => {
    rejects('JF_SERVER_API_TOKEN', ['']);
    rejects('JF_SERVER_API_TOKEN', [''], { NODE_ENV: 'production' });
  });

  test('accepts a short JF_SECRET_KEY_BASE', () => {
    expect(settings({ JF_SECRET_KEY_BASE: 'x' }).http.secretKeyBase).toBe('x');
  });

  test.each([
    ['true', { kind: 'host' }],
    ['FALSE', { kind: 'any' }],
    [':conn', { kind: 'connection' }],
    ['//a.example  //*.b.example', { kind: 'list', origins: ['//a.example', '//*.b.example'] }],
    ['1', { kind: 'list', origins: ['1'] }],
  ])('parses JF_CHECK_ORIGIN=%s into its rule', (given, rule) => {
    expect(settings({ JF_CHECK_ORIGIN: given }).http.checkOrigin).toEqual(rule);
  });
});

describe('webrtc, sip and storage', () => {
  test('leaves the TURN variables unread with JF_WEBRTC_USED=false', () => {
    const env = {
      JF_WEBRTC_USED: 'false',
      JF_WEBRTC_TURN_IP: 'garbage',
      JF_WEBRTC_TURN_LISTEN_IP: '',
      JF_WEBRTC_TURN_PORT_RANGE: '-',
      JF_WEBRTC_TURN_TCP_PORT: 'x',
    };
    expect(settings(env).webrtc).toBeNull();
  });

  test('requires and checks JF_SIP_IP with SIP enabled, and ignores it otherwise', () => {
    expect(failure({ JF_SIP_USED: 'true' }).variable).toBe('JF_SIP_IP');
    rejects('JF_SIP_IP', ['', 'sip.example.com'], { JF_SIP_USED: 'true' });
    expect(settings({ JF_SIP_USED: 'true', JF_SIP_IP: '10.0.0.1' }).sip).toEqual({ ip: '10.0.0.1' });
    expect(settings({ JF_SIP_IP: 'garbage' }).sip).toBeNull();
  });

  test('requires the four storage credentials together, and lists the missing ones in the error', () => {
    const all = { JF_S3_BUCKET: 'b', JF_S3_REGION: 'r', JF_S3_ACCESS_KEY_ID: 'i', JF_S3_SECRET_ACCESS_KEY: 's' };
    expect(settings(all).recording.s3).toEqual({ bucket: 'b', region: 'r', accessKeyId: 'i', secretAccessKey: 's' });

    const error = failure({ JF_S3_BUCKET: 'b', JF_S3_SECRET_ACCESS_KEY: 'hidden-value', JF_S3_REGION: '' });
    expect(error.message).toContain('missing: JF_S3_REGION, JF_S3_ACCESS_KEY_ID');
    expect(error.message).not.toContain('hidden-value');
  });

  test('accepts the path prefix and the endpoint without credentials', () => {
    const { recording } = settings({ JF_S3_PATH_PREFIX: 'x/y', JF_S3_ENDPOINT: 'http://127.0.0.1:9000/' });
    expect(recording).toEqual({ enabled: true, s3: null, s3PathPrefix: 'x/y', s3Endpoint: 'http://127.0.0.1:9000' });
    rejects('JF_S3_ENDPOINT', ['ftp://x', 'store.example.com']);
  });

  test('makes the resources path absolute and ignores JF_OUTPUT_BASE_PATH', () => {
    expect(settings({ JF_RESOURCES_BASE_PATH: './data' }).resourcesPath).toBe('/srv/app/data');
    expect(settings({ JF_RESOURCES_BASE_PATH: '/data' }).resourcesPath).toBe('/data');
    expect(load({ JF_OUTPUT_BASE_PATH: '/old' })).toEqual(load());
  });

  test('falls back to info with a warning on an unknown log level', () => {
    const { settings: result, warnings } = load({ JF_LOG_LEVEL: 'loud' });
    expect(result.logging.level).toBe('info');
    expect(warnings).toEqual([{ variable: 'JF_LOG_LEVEL', message: expect.stringContaining('"loud"') }]);
    expect(settings({ JF_LOG_LEVEL: 'warning' }).logging.level).toBe('warning');
  });
});

describe('cluster', () => {
  test('checks only the mode with distribution off', () => {
    const env = {
      JF_DIST_STRATEGY_NAME: 'x',
      JF_DIST_NODE_NAME: 'x',
      JF_DIST_NODES: 'x',
      JF_DIST_POLLING_INTERVAL: 'x',
      JF_DIST_TICK_TIME: 'x',
      JF_DIST_IP: 'x',
      ERL_EPMD_PORT: 'x',
      JF_DIST_MIN_PORT: 'x',
      JF_DIST_MAX_PORT: 'x',
    };
    expect(settings(env).cluster).toBeNull();
    rejects('JF_DIST_MODE', ['long', 'NAME']);
  });

  test('uses the node list as the default strategy, and ignores the own name in the list', () => {
    expect(settings({ ...distributed, JF_DIST_NODES: 'bloom@media1  a@b c@d a@b' }).cluster).toEqual({
      mode: 'sname',
      nodeName: 'bloom@media1',
      discovery: { strategy: 'NODES_LIST', nodes: ['a@b', 'c@d'] },
      cookie: 'bloom_cookie',
      ip: null,
      tickTimeS: 60,
      standby: false,
      portMapperPort: 4369,
      portRange: null,
    });
  });

  test('accepts node names of the form <nodename>@<hostname> with exactly one @', () => {
    rejects('JF_DIST_NODE_NAME', ['bloom', 'a@b@c', '@b', 'a@', 'a @b'], distributed);
    rejects('JF_DIST_NODES', ['bloom', 'a@b a@b@c'], { JF_DIST_ENABLED: 'true' });
  });

  test('requires a host name that fits the mode, and names both variables in the message', () => {
    const dotted = failure({ ...distributed, JF_DIST_NODE_NAME: 'a@b.example' });
    expect(dotted.message).toMatch(/JF_DIST_NODE_NAME="a@b\.example".*JF_DIST_MODE=sname/);

    const short = failure({ ...distributed, JF_DIST_MODE: 'name', JF_DIST_NODE_NAME: 'a@b' });
    expect(short.message).toMatch(/JF_DIST_NODE_NAME="a@b".*JF_DIST_MODE=name/);

    for (const name of ['a@10.0.0.1', 'a@b.example', 'a@::1']) {
      expect(settings({ ...distributed, JF_DIST_MODE: 'name', JF_DIST_NODE_NAME: name }).cluster?.nodeName).toBe(name);
    }
    expect(settings({ ...distributed, JF_DIST_MODE: 'name' }).cluster?.nodeName).toBe('bloom@media1.example.com');
  });

  test('warns of an empty node list and of the default cookie', () => {
    const { warnings } = load({ JF_DIST_ENABLED: 'TRUE' });
    expect(warnings.map((warning) => warning.variable)).toEqual(['JF_DIST_NODES', 'JF_DIST_COOKIE']);
    expect(load({ ...distributed, JF_DIST_COOKIE: 'private' }).warnings).toEqual([]);
  });

  test('polls the query with DNS, and leaves a host name without dots to be resolved', () => {
    const { cluster } = settings({ ...dns, JF_DIST_NODE_NAME: 'app@host', JF_DIST_NODES: 'garbage' });
    expect(cluster?.nodeName).toBe('app@host');
    expect(cluster?.discovery).toEqual({ strategy: 'DNS', query: 'sfu.internal', pollingIntervalMs: 5000 });
  });

  test('checks DNS settings in this order: mode, node name, query, polling interval', () => {
    const env: Record<string, string> = {
      ...dns,
      JF_DIST_MODE: 'sname',
      JF_DIST_NODE_NAME: 'bad',
      JF_DIST_QUERY: '',
      JF_DIST_POLLING_INTERVAL: '0',
    };
    expect(failure(env).variable).toBe('JF_DIST_MODE');
    env['JF_DIST_MODE'] = 'name';
    expect(failure(env).variable).toBe('JF_DIST_NODE_NAME');
    env['JF_DIST_NODE_NAME'] = 'a@b';
    expect(failure(env).variable).toBe('JF_DIST_QUERY');
    expect(failure(env).hostFirst).toBeUndefined();
    env['JF_DIST_QUERY'] = 'q';
    // Between these two checks the host name must be resolved, which only the program can do.
    expect(failure(env)).toMatchObject({ variable: 'JF_DIST_POLLING_INTERVAL', hostFirst: 'b' });
    rejects('JF_DIST_POLLING_INTERVAL', ['abcd', '-25', '0', '5s'], dns);
  });

  test('ignores the polling interval with a node list, and refuses an unknown strategy', () => {
    expect(() => load({ ...distributed, JF_DIST_POLLING_INTERVAL: '0' })).not.toThrow();
    rejects('JF_DIST_STRATEGY_NAME', ['dns', 'GOSSIP'], distributed);
  });

  test('checks ports, addresses and the tick time', () => {
    rejects('JF_DIST_TICK_TIME', ['3', '601', ''], distributed);
    rejects('JF_DIST_IP', ['host', ''], distributed);
    rejects('ERL_EPMD_PORT', ['0', 'x'], distributed);
    rejects('JF_DIST_MIN_PORT', ['0', '65536'], distributed);
    rejects('JF_DIST_MAX_PORT', ['0', '65536'], { ...distributed, JF_DIST_MIN_PORT: '9000' });
    expect(failure({ ...distributed, JF_DIST_MIN_PORT: '2', JF_DIST_MAX_PORT: '1' }).message).toContain(
      'JF_DIST_MAX_PORT=1',
    );
    expect(failure({ ...distributed, JF_DIST_MAX_PORT: '1' }).variable).toBe('JF_DIST_MIN_PORT');

    const cluster = settings({ ...distributed, JF_DIST_MIN_PORT: '9000', JF_DIST_MAX_PORT: '9003' }).cluster;
    expect(cluster?.portRange).toEqual({ min: 9000, max: 9003 });
    expect(settings({ ...distributed, JF_DIST_MIN_PORT: '9000' }).cluster?.portRange).toEqual({ min: 9000, max: 9000 });
  });
});

describe('names', () => {
  test('reads FJ_ names when the JF_ name is unset, with a warning', () => {
    const { settings: result, warnings } = load({ FJ_PORT: '6000', FJ_HOST: 'a', JF_HOST: 'b' });
    expect(result.http).toMatchObject({ port: 6000, host: 'b' });
    expect(warnings.map((warning) => warning.message)).toEqual([
      'FJ_PORT is read as JF_PORT',
      'FJ_HOST has no effect because JF_HOST is set',
    ]);
    expect(failure({ FJ_PORT: '0' }).message).toContain('FJ_PORT="0"');
  });

  test('gives a hint for a misspelt name, but not for an unrelated one', () => {
    const { warnings } = load({
      JF_SERVER_API_TOKN: 'x',
      JF_WEBRTC_TURN_PORTRANGE: 'x',
      JF_INTEGRATED_TURN_IP: 'x',
      JF_VIRTUAL_HOST: 'x',
      JF_IPS: 'x',
      JF_DIST_NODE: 'x',
      OTHER: 'x',
    });
    expect(warnings.map((warning) => warning.message)).toEqual([
      'JF_SERVER_API_TOKN is not known and has no effect; did you mean JF_SERVER_API_TOKEN?',
      'JF_WEBRTC_TURN_PORTRANGE is not known and has no effect; did you mean JF_WEBRTC_TURN_PORT_RANGE?',
      'JF_IPS is not known and has no effect; did you mean JF_IP?',
      'JF_DIST_NODE is not known and has no effect; did you mean JF_DIST_NODES?',
    ]);
  });
});

test('gives a hint for a name from later releases with its replacements here', () => {
  const { warnings } = load({ FJ_COMPONENTS_USED: 'hls recording sip' });
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^FJ_COMPONENTS_USED is not read: JF_SIP_USED=true enables SIP/),
  ]);
});

describe('the secrets to mask', () => {
  test('returns the configured secrets, but not public defaults', () => {
    const env = { JF_SERVER_API_TOKEN: 'the-token', JF_DIST_COOKIE: 'bloom_cookie', ...distributed };
    expect(secretValues(settings(env))).toEqual(['the-token', settings().http.secretKeyBase]);
    expect(secretValues(settings({ JF_SERVER_API_TOKEN: 'development' }))).toEqual([settings().http.secretKeyBase]);
  });

  test('returns the value of every secret variable, and each secret of LiveKit by itself', () => {
    const first = 'the-first-secret-of-livekit-clients';
    const second = 'the-other-secret-of-livekit-clients';
    const given = {
      JF_SERVER_API_TOKEN: 'the-token',
      JF_SECRET_KEY_BASE: 'k'.repeat(64),
      JF_S3_ACCESS_KEY_ID: 'the-key-id',
      JF_S3_SECRET_ACCESS_KEY: 'the-access-key',
      JF_WEBHOOK_SECRET: 'the-hook',
      JF_DIST_COOKIE: 'the-cookie',
      JF_LIVEKIT_KEYS: `app: ${first}, other: ${second}`,
    };
    const secretNames = Object.values(VARIABLES).flatMap((variable) => ('secret' in variable ? [variable.name] : []));
    expect(Object.keys(given).toSorted()).toEqual(secretNames.toSorted());

    const bucket = { JF_S3_BUCKET: 'recordings', JF_S3_REGION: 'eu-1' };
    const { JF_LIVEKIT_KEYS: _, ...single } = given;
    const masked = secretValues(settings({ ...given, ...bucket, ...distributed }));
    expect(masked.toSorted()).toEqual([...Object.values(single), first, second].toSorted());
  });
});
