import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { parseSourceUri } from './source-uri.js';

const shown = (uri: string): string | undefined => parseSourceUri(uri)?.shown;

describe('the address of a source', () => {
  test('accepts one of five schemes with a host', () => {
    for (const uri of [
      'rtsp://camera',
      'RTSPS://[::1]:322/stream',
      'rtmp://10.0.0.1/live/key',
      'rtmps://host.example:443/live',
      'srt://host:9000',
    ]) {
      expect(parseSourceUri(uri)?.secret).toBe(uri.replace('RTSPS', 'rtsps'));
    }
    for (const uri of [
      '',
      'camera',
      'rtsp:camera',
      'rtsp://',
      'rtsp:///path',
      'rtsp://user@/path',
      'rtsp://host:0/',
      'rtsp://host:65536/',
      'rtsp://ho st/',
      'rtsp://host/a b',
      'rtsp://host/\u0000',
      'rtsp://höst/',
      'srt://host',
      'http://camera/stream.m3u8',
      'file:///etc/passwd',
      'concat:rtsp://a|rtsp://b',
      'rtmpt://host/live',
      `rtsp://host/${'a'.repeat(2_048)}`,
    ]) {
      expect({ uri, parsed: parseSourceUri(uri) }).toEqual({ uri, parsed: undefined });
    }
  });

  test('shows an address without its credentials', () => {
    expect(shown('rtsp://admin:p%40ss@cam:554/Streaming/Channels/101')).toBe(
      'rtsp://***@cam:554/Streaming/Channels/101',
    );
    expect(shown('rtsp://admin:p@ss@cam/')).toBe('rtsp://***@cam/');
    expect(shown('rtsp://cam/media.amp?videocodec=h264&token=abc&resolution=640x480')).toBe(
      'rtsp://cam/media.amp?videocodec=h264&token=***&resolution=640x480',
    );
    expect(shown('rtsp://cam/user=admin&password=1234&channel=1')).toBe('rtsp://cam/user=***&password=***&channel=1');
    expect(shown('rtsp://cam/user=admin_password=tlJwpbo6_channel=1.sdp')).toBe('rtsp://cam/user=***');
    expect(shown('rtsp://cam/?c2VjcmV0#more')).toBe('rtsp://cam/?***#***');
    expect(shown('srt://host:9000?passphrase=0123456789&latency=200')).toBe(
      'srt://host:9000?passphrase=***&latency=200',
    );
    expect(shown('rtsp://cam/plain')).toBe('rtsp://cam/plain');
  });

  test('accepts the name of an SRT stream and its encryption, but nothing that opens a listener or takes memory', () => {
    const options = (query: string): unknown => parseSourceUri(`srt://host:9000?${query}`)?.srt;
    expect(options('mode=caller&streamid=read%3Acam&passphrase=0123456789&pbkeylen=32&latency=200')).toEqual({
      streamid: 'read:cam',
      passphrase: '0123456789',
      pbkeylen: '32',
      latency: '200000',
    });
    expect(options('')).toEqual({});
    for (const query of [
      'mode=listener',
      'mode=rendezvous',
      'rcvbuf=2000000000',
      'localport=80',
      'latency=9000',
      'latency=-1',
      'passphrase=short',
      'streamid=%zz',
      'constructor=x',
      '__proto__=x',
    ]) {
      expect({ query, options: options(query) }).toEqual({ query, options: undefined });
    }
  });

  test('never shows what was given as a secret', () => {
    const secret = fc.stringMatching(/^[A-Z0-9]{8,20}$/);
    const uri = fc.oneof(
      secret.map((s) => [s, `rtsp://${s}@cam/path`] as const),
      secret.map((s) => [s, `rtsps://user:${s}@cam/path?channel=1`] as const),
      fc
        .tuple(secret, fc.stringMatching(/^[a-z]{1,12}$/), fc.stringMatching(/^[a-z]{0,6}$/))
        .filter(([, name]) => parseSourceUri(`rtsp://cam/?${name}=X`)?.shown.endsWith('***') === true)
        .map(([s, name, path]) => [s, `rtsp://cam/${path}?fps=3&${name}=${s}`] as const),
      fc
        .tuple(secret, fc.constantFrom('password', 'pwd', 'passwd', 'token', 'user', 'authkey'))
        .map(([s, name]) => [s, `rtmp://cam/live/${name}=${s}/x`] as const),
    );
    fc.assert(
      fc.property(uri, ([hidden, given]) => {
        expect(parseSourceUri(given)?.shown).not.toContain(hidden);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('rejects garbage, or is printable with a known scheme', () => {
    const pieces = fc.constantFrom(
      'rtsp',
      'srt',
      '://',
      '@',
      ':',
      '/',
      '?',
      '#',
      '&',
      '=',
      '%',
      '[',
      ']',
      'host',
      '9',
      ' ',
      '\n',
    );
    const garbage = fc.oneof(
      fc.array(pieces, { maxLength: 20 }).map((some) => `rtsp://${some.join('')}`),
      fc.string(),
    );
    fc.assert(
      fc.property(garbage, (given) => {
        const uri = parseSourceUri(given);
        if (uri === undefined) return;
        expect(uri.shown).toMatch(/^(rtsps?|srt|rtmps?):\/\/[!-~]+$/);
        // The native library ends the host at the same place.
        expect(uri.secret).toMatch(/^[a-z]+:\/\/([^/?#]*@)?[^/?#@]+([/?#]|$)/);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
