import { describe, expect, test } from '@jest/globals';
import { ConfigError } from './errors.js';
import { loadConfig } from './load-config.js';
import type { WebrtcSettings } from './settings.js';
import { loadTls } from './tls.js';

// Made for this test and used nowhere else: a self-signed localhost certificate, its key, and an unrelated key.
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+9ETu9RyQoqD+hLL
1xqG/6hGbrssIEfCn2ntrFssyb2hRANCAAS1l96jq/aUfQ7GLKxROexzLzItLIwp
r6d1MxqoYhWRQObspGfCqwMYZUhuXFmZoe5ne2D5ZSaw/Aj0wl0T2i9f
-----END PRIVATE KEY-----
`;
const CERT = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUQE9BF5JH687GXJDbTY8LhF18g7QwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTExNTgyMloYDzIxMjYxMDI4
MTE1ODIyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAS1l96jq/aUfQ7GLKxROexzLzItLIwpr6d1MxqoYhWRQObspGfCqwMY
ZUhuXFmZoe5ne2D5ZSaw/Aj0wl0T2i9fo28wbTAdBgNVHQ4EFgQU9N0lq+iI9B6z
CRRrnIh1DgF9/F8wHwYDVR0jBBgwFoAU9N0lq+iI9B6zCRRrnIh1DgF9/F8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgF5Y89mwGuzy1lYs2YvbnZOfVJN7cVchY/LC7YuMcb3kCIQDe
2q8XjAEUQ6AdZT2dqZp9OpBmV20ERdKxnDvp7+7i4Q==
-----END CERTIFICATE-----
`;
const OTHER_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgF8RPS8LPZgSwzdOB
DobuBSo9KQMc4oBAPaOy1zIuEQWhRANCAAQCf49F4u1AtaFF3jWOice6/2ayMFMM
QJL5odMF8YjIbWe0OJJFuGC3Ab/+014AuZbQb5l47Mtj++GkrQpn4AWq
-----END PRIVATE KEY-----
`;

const files: Record<string, string> = { '/key': KEY, '/cert': CERT, '/other': OTHER_KEY, '/garbage': 'garbage' };

function load(keyPath?: string, certPath?: string) {
  const readFile = (path: string) => {
    const text = files[path];
    if (text === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);

    return Buffer.from(text);
  };

  return loadTls({ keyPath, certPath, readFile });
}

function failure(keyPath?: string, certPath?: string): ConfigError {
  try {
    load(keyPath, certPath);
  } catch (error) {
    if (error instanceof ConfigError) return error;
  }
  throw new Error('was accepted');
}

test('serves plain HTTP with neither file, and HTTPS with both', () => {
  expect(load()).toBeNull();
  expect(load('/key', '/cert')).toEqual({
    key: Buffer.from(KEY),
    cert: Buffer.from(CERT),
    keyPath: '/key',
    certPath: '/cert',
  });
});

describe('invalid TLS files', () => {
  test('fails with one of the two files, and names both variables', () => {
    expect(failure('/key').message).toMatch(/JF_SSL_KEY_PATH="\/key".*JF_SSL_CERT_PATH/);
    expect(failure(undefined, '/cert').message).toMatch(/JF_SSL_CERT_PATH="\/cert".*JF_SSL_KEY_PATH/);
  });

  test('fails with a file that cannot be read', () => {
    expect(failure('/missing', '/cert').message).toContain('JF_SSL_KEY_PATH="/missing" cannot be read: ENOENT');
    expect(failure('/key', '/missing').message).toContain('JF_SSL_CERT_PATH="/missing" cannot be read: ENOENT');
  });

  test('fails with a file that is not PEM of the expected kind', () => {
    expect(failure('/garbage', '/cert').message).toContain('JF_SSL_KEY_PATH="/garbage" is not a private key');
    expect(failure('/key', '/garbage').message).toContain('JF_SSL_CERT_PATH="/garbage" is not a certificate');
    expect(failure('/key', '/key').variable).toBe('JF_SSL_CERT_PATH');
  });

  test('fails with the key of another certificate', () => {
    expect(failure('/other', '/cert').message).toContain('does not belong to the certificate');
  });
});

describe('TURN over TLS on the port of HTTPS', () => {
  function load(env: Record<string, string>) {
    const tls = {
      JF_SSL_KEY_PATH: '/key',
      JF_SSL_CERT_PATH: '/cert',
      JF_PORT: '8443',
      JF_WEBRTC_TURN_TLS_PORT: '8443',
    };
    return loadConfig(
      { NODE_ENV: 'production', JF_SERVER_API_TOKEN: 'a-token-of-length', ...tls, ...env },
      {
        cwd: '/',
        hostname: 'a',
        cores: 1,
        randomBytes: (n) => Buffer.alloc(n),
        readFile: (path) => Buffer.from(files[path] ?? ''),
      },
    );
  }
  const webrtc = (env: Record<string, string>): Partial<WebrtcSettings> => load(env).settings.webrtc ?? {};

  test('causes a warning if it is announced at an address, which Firefox does not accept', () => {
    const warned = (env: Record<string, string>) =>
      load({ JF_WEBRTC_TURN_IP: '203.0.113.10', ...env }).warnings.map(({ message }) => message);
    expect(warned({ JF_HOST: 'media.example.com' })).toEqual([]);
    expect(warned({ JF_HOST: '203.0.113.10' })).toEqual([expect.stringMatching(/Firefox.*host name/)]);
  });

  test.each([
    ['media.example.com', 'media.example.com', 443],
    ['media.example.com:8443/api', 'media.example.com', 8443],
    ['[2001:db8::1]:444', '2001:db8::1', 444],
    ['[2001:db8::1]', '2001:db8::1', 443],
  ])('announces TURN over TLS as JF_HOST=%s says', (host, turnTlsHost, turnTlsOnHttp) => {
    const env = { JF_HOST: host, JF_WEBRTC_TURN_IP: 'another.example.com' };
    expect(webrtc(env)).toMatchObject({ turnTlsHost, turnTlsOnHttp });
  });

  test.each([
    ['0.0.0.0', '192.0.2.1'],
    ['192.0.2.1', '0.0.0.0'],
    ['192.0.2.1', '192.0.2.1'],
  ])('shares the listener of JF_IP=%s where the media address is %s', (ip, listenIp) => {
    expect(webrtc({ JF_IP: ip, JF_WEBRTC_TURN_LISTEN_IP: listenIp }).turnTlsOnHttp).not.toBeNull();
  });

  test('has its own listener on another port or another address', () => {
    expect(webrtc({ JF_WEBRTC_TURN_TLS_PORT: '443' }).turnTlsOnHttp).toBeNull();
    expect(webrtc({ JF_IP: '192.0.2.1', JF_WEBRTC_TURN_LISTEN_IP: '192.0.2.2' }).turnTlsOnHttp).toBeNull();
  });
});
