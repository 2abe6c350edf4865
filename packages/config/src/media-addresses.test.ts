import { expect, test } from '@jest/globals';
import { failure, rejects, settings } from './testing/loading.js';

test('accepts for JF_WEBRTC_TURN_IP an address, a host name, or auto with a STUN server', () => {
  const webrtc = (env: Record<string, string>) => settings(env).webrtc;
  expect(webrtc({ JF_WEBRTC_TURN_IP: '2001:db8::1' })?.turnIp).toBe('2001:db8::1');
  expect(webrtc({ JF_WEBRTC_TURN_IP: 'media.example.com', JF_HOST: 'example.com' })).toMatchObject({
    turnIp: 'media.example.com',
    turnTlsHost: 'media.example.com',
  });
  const auto = { JF_WEBRTC_TURN_IP: 'auto', JF_HOST: 'example.com:8080/media' };
  expect(webrtc({ ...auto, JF_STUN_SERVER: 'stun.example.com' })).toMatchObject({
    turnIp: 'auto',
    turnTlsHost: 'example.com',
    stunServer: { host: 'stun.example.com', port: 3478 },
  });
  expect(webrtc({ JF_STUN_SERVER: '[2001:db8::1]:19302' })?.stunServer).toEqual({
    host: '2001:db8::1',
    port: 19_302,
  });
  expect(failure(auto).message).toMatch(/JF_STUN_SERVER is not set/);
  rejects('JF_WEBRTC_TURN_IP', ['', '1.2.3', '1.2.3.4.5', '256.1.1.1', 'a b', 'a..b', '-a', 'http://a', ':::1', 'a:1']);
  rejects('JF_STUN_SERVER', ['a:0', 'a:65536', 'a:', ':1', '[a]:1', '1.2.3:1', 'stun:a:1', 'a/b']);
});

test('uses IPv4 and IPv6 for media when both variables have an address of each, in any order', () => {
  expect(
    settings({ JF_WEBRTC_TURN_IP: '192.0.2.1 2001:db8::1', JF_WEBRTC_TURN_LISTEN_IP: ':: 0.0.0.0' }).webrtc,
  ).toMatchObject({
    turnIp: '192.0.2.1',
    turnListenIp: '0.0.0.0',
    second: { turnIp: '2001:db8::1', turnListenIp: '::' },
  });
  for (const [variable, env] of [
    ['JF_WEBRTC_TURN_LISTEN_IP', { JF_WEBRTC_TURN_IP: '192.0.2.1 2001:db8::1', JF_WEBRTC_TURN_LISTEN_IP: '::' }],
    ['JF_WEBRTC_TURN_IP', { JF_WEBRTC_TURN_LISTEN_IP: '0.0.0.0 ::' }],
  ] as const) {
    const error = failure(env);
    expect(error.variable).toBe(variable);
    expect(error.message).toContain(`${variable} has one address`);
  }
  const twice = ['1.2.3.4 5.6.7.8', '::1 ::2', '1.2.3.4  ::1', '1.2.3.4 media.example.com', '1.2.3.4 ::1 ::2'];
  for (const name of ['JF_WEBRTC_TURN_IP', 'JF_WEBRTC_TURN_LISTEN_IP']) rejects(name, twice);
});
