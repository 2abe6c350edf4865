import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Encryption, keyFromPassphrase } from './index.js';

/** Messages to the worker. */
let posted: unknown[];

class FakeWorker extends EventTarget {
  postMessage(message: unknown): void {
    posted.push(message);
  }
}

beforeEach(() => {
  posted = [];
  Object.assign(globalThis, { RTCRtpScriptTransform: () => undefined });
});
afterEach(() => void Reflect.deleteProperty(globalThis, 'RTCRtpScriptTransform'));

const encryptWith = (key: unknown) =>
  new Encryption({ key: key as Uint8Array, worker: () => new FakeWorker() as unknown as Worker });

describe('A key', () => {
  const kinds: readonly [key: unknown, given: string][] = [
    ['a secret of sixteen', 'a string'],
    [16, 'a number'],
    [new ArrayBuffer(16), 'an ArrayBuffer'],
    [new Float64Array(16), 'a Float64Array'],
    [new DataView(new ArrayBuffer(16)), 'a DataView'],
    [Array.from({ length: 16 }, () => 7), 'an Array'],
    [{ length: 99 }, 'an Object'],
    [{ length: 99, [Symbol.toStringTag]: 'CryptoKey' }, 'a CryptoKey'],
    [null, 'null'],
    [undefined, 'undefined'],
  ];

  test.each(kinds)('is refused if it is no bytes: %p', (key, given) => {
    const message = `the key must be a Uint8Array of at least 16 bytes, not ${given}`;
    expect(() => encryptWith(key)).toThrow(message);
    expect(() => encryptWith(new Uint8Array(16)).setKey(key as Uint8Array)).toThrow(message);
  });

  test('is refused with a hint if somebody forgot to wait for it', () => {
    const message = 'the key is a Promise: await keyFromPassphrase(...)';
    expect(() => encryptWith(Promise.resolve(new Uint8Array(16)))).toThrow(message);
  });

  test('is refused if it is too short', () => {
    expect(() => encryptWith(new Uint8Array(15))).toThrow('a key of 15 bytes: at least 16 are needed');
  });

  test.each([new Uint8Array(16).fill(7), Buffer.alloc(32, 7)])('of bytes reaches the worker: %p', (key) => {
    encryptWith(key);
    expect(posted).toEqual([{ type: 'key', key: Uint8Array.from(key) }]);
  });

  test('that is refused leaves the previous one', () => {
    const encryption = encryptWith(new Uint8Array(16));
    expect(() => encryption.setKey('another' as unknown as Uint8Array)).toThrow();
    expect(posted).toHaveLength(1);
  });

  test.each(['', undefined, Promise.resolve('words')])('is not made of no words: %p', async (passphrase) => {
    const made = keyFromPassphrase(passphrase as string, 'room');
    await expect(made).rejects.toThrow('the passphrase must be a string that is not empty');
  });
});
