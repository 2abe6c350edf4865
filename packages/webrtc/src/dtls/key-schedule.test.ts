import { describe, expect, test } from '@jest/globals';
import { prf, recordKeys, srtpKeys } from './key-schedule.js';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('the key schedule', () => {
  // Test vector for P_SHA256, published on the TLS working group's list.
  test('expands a secret to the published test vector', () => {
    const secret = hex('9b be 43 6b a9 40 f0 17 b1 76 52 84 9a 71 db 35');
    const seed = hex('a0 ba 9f 93 6c da 31 18 27 a6 f7 96 ff d5 19 8c');
    const expected =
      'e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17' +
      'abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66';
    expect(prf(secret, { label: 'test label', seed, length: 100 }).toString('hex')).toBe(expected);
  });

  test("splits key material into consecutive keys, the client's first", () => {
    const master = Buffer.alloc(48, 1);
    const randoms = { client: Buffer.alloc(32, 2), server: Buffer.alloc(32, 3) };
    const { client, server } = recordKeys(master, randoms);
    const block = prf(master, {
      label: 'key expansion',
      seed: Buffer.concat([randoms.server, randoms.client]),
      length: 40,
    });
    expect(Buffer.concat([client.key, server.key, client.iv, server.iv])).toEqual(block);
    const media = srtpKeys(master, randoms);
    const exported = prf(master, {
      label: 'EXTRACTOR-dtls_srtp',
      seed: Buffer.concat([randoms.client, randoms.server]),
      length: 60,
    });
    expect(Buffer.concat([media.remoteKey, media.localKey, media.remoteSalt, media.localSalt])).toEqual(exported);
  });
});
