import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { useNativeX25519, x25519, x25519KeyPair } from './native-x25519.js';

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
const asHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('X25519 in OpenSSL', () => {
  test('gives the secret of RFC 7748 section 6.1', () => {
    const alice = hex('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a');
    const alicePublic = hex('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a');
    const bob = hex('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb');
    const bobPublic = hex('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f');
    const secret = '4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742';
    expect(asHex(x25519(alice, bobPublic))).toBe(secret);
    expect(asHex(x25519(bob, alicePublic))).toBe(secret);
  });

  test('agrees with itself on fresh pairs whose bytes are their own memory', () => {
    const [a, b] = [x25519KeyPair(), x25519KeyPair()];
    expect(asHex(x25519(a.secretKey, b.publicKey))).toBe(asHex(x25519(b.secretKey, a.publicKey)));
    expect(asHex(a.secretKey)).not.toBe(asHex(b.secretKey));
    for (const key of [a.publicKey, a.secretKey]) expect([key.length, key.buffer.byteLength]).toEqual([32, 32]);
  });

  test.each([
    ['the point zero', Buffer.alloc(32)],
    ['a key cut short', Buffer.alloc(31, 9)],
    ['nothing', Buffer.alloc(0)],
  ])('refuses %s', (_, publicKey) => {
    expect(() => x25519(x25519KeyPair().secretKey, publicKey)).toThrow();
  });

  test('gives what tweetnacl gave, and stands in its place in werift', () => {
    const fromHere = createRequire(import.meta.url);
    const tweetnacl = createRequire(fromHere.resolve('werift'))('tweetnacl');
    const { box, lowlevel } = tweetnacl;
    const [a, b] = [x25519KeyPair(), x25519KeyPair()];
    const before = new Uint8Array(32);
    lowlevel.crypto_scalarmult(before, a.secretKey, b.publicKey);
    expect(asHex(x25519(a.secretKey, b.publicKey))).toBe(asHex(before));
    useNativeX25519();
    expect([box.keyPair, tweetnacl.scalarMult]).toEqual([x25519KeyPair, x25519]);
  });
});
