import { createPrivateKey, createPublicKey, diffieHellman } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Group, createKeyExchange } from './key-exchange.js';

describe.each(Object.entries(Group))('an exchange on %s', (_, group) => {
  test('gives both sides the same secret, a new one each time', () => {
    const secrets = Array.from({ length: 20 }, () => {
      const [ours, theirs] = [createKeyExchange(group), createKeyExchange(group)];
      const secret = ours.secret(theirs.publicKey);
      expect(secret).toEqual(theirs.secret(ours.publicKey));
      return secret?.toString('hex');
    });
    expect(new Set(secrets).size).toBe(20);
  });

  test('refuses a public key that is not valid', () => {
    const ours = createKeyExchange(group);
    for (const bytes of [0, 31, 32, 33, 65]) expect(ours.secret(Buffer.alloc(bytes))).toBeUndefined();
  });
});

test('exports an X25519 key that others accept (Bob of RFC 7748, section 6.1)', () => {
  const d = Buffer.from('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb', 'hex');
  const bob = Buffer.from('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f', 'hex');
  const jwk = { kty: 'OKP', crv: 'X25519', x: bob.toString('base64url') };
  const privateKey = createPrivateKey({ key: { ...jwk, d: d.toString('base64url') }, format: 'jwk' });
  const ours = createKeyExchange(Group.x25519);
  const publicKey = createPublicKey({ key: { ...jwk, x: ours.publicKey.toString('base64url') }, format: 'jwk' });
  expect(ours.secret(bob)).toEqual(diffieHellman({ privateKey, publicKey }));
});
