import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { bindingAddress, bindingRequest } from './binding.js';
import { Attribute, MessageClass, Method } from './constants.js';
import { StunMessage } from './message.js';
import { StunWriter } from './writer.js';

const ID = Buffer.from('0102030405060708090a0b0c', 'hex');

function answer(bytes: number[], id: Buffer = ID, kind: MessageClass = MessageClass.success): Buffer {
  const address = { bytes: Uint8Array.from(bytes), port: 4_711 };
  return new StunWriter(Method.binding, kind, id).xorAddress(Attribute.xorMappedAddress, address).finish();
}

describe('a STUN binding', () => {
  test('asks with an empty request', () => {
    const message = StunMessage.parse(bindingRequest(ID));
    expect(message).toMatchObject({
      method: Method.binding,
      messageClass: MessageClass.request,
      fingerprintHolds: true,
    });
    expect(message?.transactionId).toEqual(ID);
  });

  test('finds an address of either IP family', () => {
    expect(bindingAddress(answer([203, 0, 113, 9]), ID)).toBe('203.0.113.9');
    expect(bindingAddress(answer([0x20, 1, 0xd, 0xb8, ...Array.from({ length: 11 }, () => 0), 1]), ID)).toBe(
      '2001:db8:0:0:0:0:0:1',
    );
  });

  test('ignores responses to others, errors and responses without an address', () => {
    expect(bindingAddress(answer([203, 0, 113, 9], randomBytes(12)), ID)).toBeUndefined();
    expect(bindingAddress(answer([203, 0, 113, 9], ID, MessageClass.error), ID)).toBeUndefined();
    expect(bindingAddress(new StunWriter(Method.binding, MessageClass.success, ID).finish(), ID)).toBeUndefined();
  });

  test('never throws on garbage', () => {
    const good = answer([203, 0, 113, 9]);
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), fc.uint8Array({ maxLength: 64 }), (at, byte, tail) => {
        const bad = Buffer.concat([good, tail]);
        bad[at] = byte;
        const address = bindingAddress(bad, ID);
        if (address !== undefined) expect(address).toMatch(/^[0-9a-f:.]+$/);
        bindingAddress(Buffer.from(tail), ID);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});
