import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { type Challenge, chooseChallenge, DigestClient } from './digest.js';

const fields =
  'realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"';
const client = () =>
  new DigestClient(
    { username: 'Mufasa', password: 'Circle of Life' },
    () => 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
  );

function answer(algorithm: string): string {
  const digest = client();
  const challenge = chooseChallenge([`Digest ${fields}, algorithm=${algorithm}`]);
  if (challenge === undefined) throw new Error('no challenge');
  expect(digest.challenge(challenge)).toBe(true);
  return digest.authorization('GET', '/dir/index.html') ?? '';
}

describe('digest authentication', () => {
  test('computes the responses of RFC 7616 section 3.9.1', () => {
    expect(answer('MD5')).toContain('response="8ca523f5e9506fed4657c9700eebdbec"');
    expect(answer('SHA-256')).toContain('response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"');
  });

  test('omits the client nonce and the count without qop (RFC 2069)', () => {
    const digest = client();
    const challenge = chooseChallenge(['Digest realm="r", nonce="n"']);
    expect(challenge && digest.challenge(challenge)).toBe(true);
    expect(digest.authorization('REGISTER', 'sip:r')).not.toMatch(/qop|cnonce|nc=/);
  });

  test('picks the stronger of two challenges, and none that it cannot answer', () => {
    expect(
      chooseChallenge(['Digest realm="r", nonce="1"', 'Digest realm="r", nonce="2", algorithm=SHA-256'])?.nonce,
    ).toBe('2');
    expect(chooseChallenge(['Basic realm="r"', 'Digest realm="r", nonce="1", algorithm=SHA-512-256'])).toBeUndefined();
    expect(chooseChallenge(['Digest realm="r", nonce="1", qop="auth-int"'])).toBeUndefined();
  });

  test('counts the uses of a nonce and restarts with the next one', () => {
    const digest = client();
    const challenge = (nonce: string, more = '') => {
      const read = chooseChallenge([`Digest realm="r", nonce="${nonce}", qop="auth"${more}`]);
      if (read === undefined) throw new Error('no challenge');
      return read;
    };
    digest.challenge(challenge('a'));
    expect(digest.authorization('REGISTER', 'sip:r')).toContain('nc=00000001');
    expect(digest.authorization('REGISTER', 'sip:r')).toContain('nc=00000002');
    expect(digest.challenge(challenge('b', ', stale=TRUE'))).toBe(true);
    expect(digest.authorization('REGISTER', 'sip:r')).toContain('nc=00000001');
    // Rejected although the nonce was not stale: the password is wrong.
    expect(digest.challenge(challenge('c'))).toBe(false);
    digest.authorization('REGISTER', 'sip:r');
    digest.accepted();
    // After acceptance, an expired nonce is not a rejection, stale or not.
    expect(digest.challenge(challenge('d'))).toBe(true);
  });

  test('starts no header field at a line break in a name or a challenge', () => {
    const digest = new DigestClient({ username: 'a"\r\nX-Injected: yes', password: 'p' }, () => 'c');
    digest.challenge({ ...(chooseChallenge(['Digest realm="r", nonce="n"']) as Challenge), opaque: 'o\r\nZ: 1' });
    const value = digest.authorization('REGISTER', 'sip:h') as string;
    expect(value).toContain('username="a\\"X-Injected: yes"');
    // oxlint-disable-next-line no-control-regex
    expect(value).not.toMatch(/[\u0000-\u001f]/);
  });

  test('does not mistake garbage for a challenge and never throws', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(fc.constantFrom('Digest ', 'realm="', '"', ',', 'nonce=', 'x', '\\'), fc.string({ maxLength: 8 })),
          { maxLength: 20 },
        ),
        (pieces) => {
          chooseChallenge([pieces.join('')]);
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
