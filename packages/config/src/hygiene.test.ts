import { describe, expect, test } from '@jest/globals';
import { failure, load, settings } from './testing/loading.js';

/** Returns the forms that `--env-file` and mounted secrets give to a value. */
const soils = (value: string): string[] => [`"${value}"`, `'${value}'`, `${value}\r`, `${value}\n`, `"${value}"\r\n`];

describe('quotes around a value and line breaks after it', () => {
  test.each([
    ['JF_STRUCTURED_LOGGING', 'true'],
    ['JF_PORT', '4000'],
    ['JF_IP', '127.0.0.2'],
    ['JF_WEBRTC_TURN_IP', '203.0.113.7'],
    ['JF_WEBRTC_TURN_LISTEN_IP', '0.0.0.0'],
    ['JF_WEBRTC_TURN_PORT_RANGE', '50000-50010'],
    ['JF_TRUSTED_PROXIES', '10.0.0.0/8 192.0.2.1'],
    ['JF_CHECK_ORIGIN', '//app.example.com //www.example.com'],
    ['JF_INSPECTION', 'read'],
    ['JF_LOG_LEVEL', 'debug'],
    ['NODE_ENV', 'test'],
  ])('removes quotes and line breaks around the value of %s', (name, value) => {
    for (const soiled of soils(value)) expect(settings({ [name]: soiled })).toEqual(settings({ [name]: value }));
  });

  test('lets quotes and line breaks neither switch a cluster off nor production to development', () => {
    for (const value of soils('true')) {
      expect(load({ JF_DIST_ENABLED: value, JF_DIST_NODES: '"a@b c@d"' }).settings.cluster).not.toBeNull();
    }
    for (const NODE_ENV of soils('production')) {
      expect(settings({ NODE_ENV, JF_SERVER_API_TOKEN: 'token-of-the-api' }).profile).toBe('production');
    }
  });

  test.each([
    'JF_SERVER_API_TOKEN',
    'JF_SECRET_KEY_BASE',
    'JF_WEBHOOK_SECRET',
    'JF_S3_SECRET_ACCESS_KEY',
    'JF_HOST',
    'JF_STUN_SERVER',
    'JF_S3_ENDPOINT',
    'JF_S3_PATH_PREFIX',
    'JF_RESOURCES_BASE_PATH',
    'JF_SSL_KEY_PATH',
    'XDG_RUNTIME_DIR',
  ])('refuses quotes or line breaks that may belong to %s, without showing the value', (name) => {
    const s3 = { JF_S3_BUCKET: 'b', JF_S3_REGION: 'r', JF_S3_ACCESS_KEY_ID: 'i', JF_S3_SECRET_ACCESS_KEY: 's' };
    for (const soiled of soils('some.value')) {
      const { variable, message } = failure({ ...s3, [name]: soiled });
      expect(variable).toBe(name);
      expect(message).toMatch(new RegExp(`^${name} (?:has quotes at both ends|ends in a line break)`));
      expect(message).not.toContain('some.value');
    }
  });

  test('reports an alias under the name that was set', () => {
    expect(failure({ FJ_SERVER_API_TOKEN: 'token\n' }).message).toContain('FJ_SERVER_API_TOKEN ends in a line break');
  });

  test('accepts quotes and line breaks inside a value, and a quote at one end of it', () => {
    for (const token of ['it"s', '"a', "b'", '"', 'a\nb']) {
      expect(settings({ JF_SERVER_API_TOKEN: token }).http.apiToken).toBe(token);
    }
  });
});
