import { describe, expect, test } from '@jest/globals';
import { loadConfig, type Machine } from './load-config.js';
import type { Environment } from './reader.js';

const machine: Machine = {
  cwd: '/srv/app',
  hostname: 'media1',
  cores: 6,
  randomBytes: (size) => Buffer.alloc(size, 7),
};
const production = { NODE_ENV: 'production', JF_SERVER_API_TOKEN: 'token-of-the-api' };
const distributed = { JF_DIST_ENABLED: 'true', JF_DIST_NODES: 'bloom@other' };

function load(env: Environment) {
  return loadConfig(env, machine);
}

describe('warnings about defaults that cannot work in production', () => {
  const names = (env: Environment): string[] =>
    load({ ...production, ...env }).warnings.map(({ variable }) => variable);
  const reachable = { JF_IP: '0.0.0.0', JF_HOST: 'media.example.com', JF_WEBRTC_TURN_IP: '203.0.113.7' };

  test('warns about addresses that clients cannot reach', () => {
    expect(names({ JF_IP: '0.0.0.0' })).toEqual(['JF_HOST', 'JF_WEBRTC_TURN_IP']);
    expect(names(reachable)).toEqual([]);
    for (const JF_HOST of ['0.0.0.0:80', 'localhost', '127.0.0.1:8080', '[::1]:80', '[::]']) {
      expect(names({ ...reachable, JF_HOST })).toEqual(['JF_HOST']);
    }
    expect(names({ ...reachable, JF_WEBRTC_TURN_IP: '0.0.0.0' })).toEqual(['JF_WEBRTC_TURN_IP']);
  });

  test('does not warn on a local-only machine, with media off, or in other profiles', () => {
    expect(names({})).toEqual([]);
    expect(names({ JF_HOST: 'media.example.com' })).toEqual(['JF_WEBRTC_TURN_IP']);
    expect(names({ ...reachable, JF_WEBRTC_TURN_IP: '127.0.0.1', JF_WEBRTC_USED: 'false' })).toEqual([]);
    expect(load({ JF_IP: '0.0.0.0', JF_SERVER_API_TOKEN: 'token' }).warnings).toEqual([]);
  });

  test('warns about media ports that Chromium silently refuses', () => {
    const of = (range: string, JF_WEBRTC_TURN_IP = '203.0.113.7'): string[] =>
      names({ ...reachable, JF_WEBRTC_TURN_PORT_RANGE: range, JF_WEBRTC_TURN_IP });
    for (const range of ['443-443', '80-80', '1024-2000', '0-0']) expect(of(range)).toEqual([]);
    for (const range of ['443-444', '500-600', '1023-1023']) expect(of(range)).toEqual(['JF_WEBRTC_TURN_PORT_RANGE']);
    expect(of('443-443', '192.168.1.7')).toEqual(['JF_WEBRTC_TURN_PORT_RANGE']);
    expect(of('443-443', 'media.example.com')).toEqual([]);
  });

  test('warns about the default secrets of a cluster', () => {
    expect(names({ ...reachable, ...distributed })).toEqual(['JF_SECRET_KEY_BASE', 'JF_DIST_COOKIE']);
    expect(
      names({ ...reachable, ...distributed, JF_SECRET_KEY_BASE: 'key-of-all-nodes', JF_DIST_COOKIE: 'c' }),
    ).toEqual([]);
  });
});

describe('secrets that others know or can guess', () => {
  const own = 'a-token-of-our-own';
  const of = (env: Environment): string[] => load(env).warnings.map(({ message }) => message);
  const reachable = { JF_IP: '0.0.0.0', JF_HOST: 'media.example.com', JF_WEBRTC_TURN_IP: '203.0.113.7' };

  test.each([undefined, '', 'Production', 'staging', 'test'])(
    'requires a token with NODE_ENV=%s on an address that others can reach',
    (NODE_ENV) => {
      const env = { NODE_ENV, JF_IP: '0.0.0.0' };
      expect(() => load(env)).toThrow(
        /JF_SERVER_API_TOKEN is not set and NODE_ENV is not production.*JF_IP=0\.0\.0\.0/,
      );
      expect(of({ ...env, JF_SERVER_API_TOKEN: own })).toEqual([]);
      expect(of({ NODE_ENV })).toEqual([]);
      expect(of({ NODE_ENV, JF_IP: '::1' })).toEqual([]);
    },
  );

  test('warns about the public token, even if set on purpose, where others can reach it', () => {
    const warning = 'JF_SERVER_API_TOKEN is the public default, which everybody knows: set one of your own';
    const set = { JF_SERVER_API_TOKEN: 'development' };
    expect(of({ ...set, JF_IP: '0.0.0.0' })).toEqual([warning]);
    expect(of({ ...set, NODE_ENV: 'production' })).toEqual([warning]);
    expect(of(set)).toEqual([]);
  });

  test('warns about each short secret once in production, without showing its value', () => {
    const short = { JF_SERVER_API_TOKEN: 'fifteen-letters', JF_SECRET_KEY_BASE: 'eleven-chrs', JF_WEBHOOK_SECRET: 'c' };
    const warnings = of({ NODE_ENV: 'production', ...reachable, ...short });
    expect(warnings.map((text) => text.split(' ', 1)[0])).toEqual(Object.keys(short));
    for (const secret of ['fifteen-letters', 'eleven-chrs']) expect(warnings.join()).not.toContain(secret);
    expect(of(short)).toEqual([]);
    const long = {
      JF_SERVER_API_TOKEN: 'sixteen-letters!',
      JF_SECRET_KEY_BASE: 'twelve-chars',
      JF_WEBHOOK_SECRET: own,
    };
    expect(of({ NODE_ENV: 'production', ...reachable, ...long })).toEqual([]);
  });
});
