import { describe, expect, test } from '@jest/globals';
import { loadConfig, type World } from './load-config.js';
import type { Environment } from './reader.js';

const world: World = { cwd: '/srv/app', hostname: 'media1', cores: 6, randomBytes: (size) => Buffer.alloc(size, 7) };
const production = { NODE_ENV: 'production', JF_SERVER_API_TOKEN: 'token-of-the-api' };
const distributed = { JF_DIST_ENABLED: 'true', JF_DIST_NODES: 'bloom@other' };

function load(env: Environment) {
  return loadConfig(env, world);
}

describe('defaults that cannot work in production are warned about', () => {
  const names = (env: Environment): string[] =>
    load({ ...production, ...env }).warnings.map(({ variable }) => variable);
  const reachable = { JF_IP: '0.0.0.0', JF_HOST: 'media.example.com', JF_WEBRTC_TURN_IP: '203.0.113.7' };

  test('addresses that clients cannot reach', () => {
    expect(names({ JF_IP: '0.0.0.0' })).toEqual(['JF_HOST', 'JF_WEBRTC_TURN_IP']);
    expect(names(reachable)).toEqual([]);
    for (const JF_HOST of ['0.0.0.0:80', 'localhost', '127.0.0.1:8080', '[::1]:80', '[::]']) {
      expect(names({ ...reachable, JF_HOST })).toEqual(['JF_HOST']);
    }
    expect(names({ ...reachable, JF_WEBRTC_TURN_IP: '0.0.0.0' })).toEqual(['JF_WEBRTC_TURN_IP']);
  });

  test('not on a machine that nobody else reaches, nor with media off, nor in other profiles', () => {
    expect(names({})).toEqual([]);
    expect(names({ JF_HOST: 'media.example.com' })).toEqual(['JF_WEBRTC_TURN_IP']);
    expect(names({ ...reachable, JF_WEBRTC_TURN_IP: '127.0.0.1', JF_WEBRTC_USED: 'false' })).toEqual([]);
    expect(load({ JF_IP: '0.0.0.0' }).warnings).toEqual([]);
  });

  test('secrets of a cluster', () => {
    expect(names({ ...reachable, ...distributed })).toEqual(['JF_SECRET_KEY_BASE', 'JF_DIST_COOKIE']);
    expect(names({ ...reachable, ...distributed, JF_SECRET_KEY_BASE: 'k', JF_DIST_COOKIE: 'c' })).toEqual([]);
  });
});
