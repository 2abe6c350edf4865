import { expect, test } from '@jest/globals';
import { WhipError } from './errors.js';
import { parseFragment, writeFragment } from './sdp-fragment.js';

const ice = { ufrag: 'abcd', pwd: '0123456789012345678901' };

test('reads credentials, and returns null for a fragment with candidates only', () => {
  expect(
    parseFragment(`a=ice-ufrag:${ice.ufrag}\r\na=ice-pwd:${ice.pwd}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n`),
  ).toEqual(ice);
  expect(parseFragment('m=audio 9 RTP/AVP 0\na=mid:0\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\n')).toBeNull();
  expect(parseFragment('')).toBeNull();
});

test('reads what it writes', () => {
  const media = { type: 'audio', protocol: 'UDP/TLS/RTP/SAVPF', mid: '0', formats: ['111'] };
  const written = writeFragment({ ice, endpoint: { address: '192.0.2.1', port: 9 }, media, mids: ['0', '1'] });
  expect(parseFragment(written)).toEqual(ice);
});

test.each([
  ['half of the credentials', 'a=ice-ufrag:abcd'],
  ['a short password', 'a=ice-ufrag:abcd\na=ice-pwd:short'],
  ['a colon in the user fragment', `a=ice-ufrag:ab:cd\na=ice-pwd:${ice.pwd}`],
  ['what is no SDP', 'hello'],
  ['too many lines', 'a=x\n'.repeat(1_001)],
  ['too long a text', `a=${'x'.repeat(64 * 1024)}`],
])('refuses %s', (_what, text) => {
  expect(() => parseFragment(text)).toThrow(WhipError);
});
