import { describe, expect, test } from '@jest/globals';
import { addressText } from '@bloom/net';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { classes, Message, methods, parseMessage } from 'werift';
import { Attribute, MessageClass, Method, StunError } from './constants.js';
import { MAX_ATTRIBUTES, StunMessage } from './message.js';
import { StunWriter } from './writer.js';

const TRANSACTION = Buffer.from('b7e7a701bc34d686fa87dfae', 'hex');

/** RFC 5769 section 2.1: request with short-term credentials. */
const REQUEST = Buffer.from(
  '000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36' +
    '000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf',
  'hex',
);
/** RFC 5769 section 2.2: response over IPv4. */
const ANSWER_V4 = Buffer.from(
  '0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643' +
    '000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96',
  'hex',
);
/** RFC 5769 section 2.3: response over IPv6. */
const ANSWER_V6 = Buffer.from(
  '010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9' +
    '00080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c',
  'hex',
);
const PASSWORD = 'VOkJxbRl1RmTxUk/WvJxBt';

const parse = (bytes: Buffer): StunMessage => {
  const message = StunMessage.parse(bytes);
  if (message === undefined) throw new Error('not a STUN message');
  return message;
};

describe('RFC 5769 test vectors', () => {
  test('parses the request, with valid integrity and fingerprint', () => {
    const message = parse(Buffer.from(REQUEST));
    expect(message.method).toBe(Method.binding);
    expect(message.messageClass).toBe(MessageClass.request);
    expect(message.transactionId).toEqual(TRANSACTION);
    expect(message.text(Attribute.username)).toBe('evtj:h6vY');
    expect(message.uint32(Attribute.priority)).toBe(0x6e0001ff);
    expect(message.has(Attribute.iceControlled)).toBe(true);
    expect(message.verifyIntegrity(PASSWORD)).toBe(true);
    expect(message.fingerprintHolds).toBe(true);
  });

  test('leaves a message unchanged when checking its integrity', () => {
    const bytes = Buffer.from(REQUEST);
    parse(bytes).verifyIntegrity(PASSWORD);
    expect(bytes).toEqual(REQUEST);
  });

  test.each([
    [ANSWER_V4, '192.0.2.1'],
    [ANSWER_V6, '2001:db8:1234:5678:11:2233:4455:6677'],
  ])('reads the mapped address from the response', (bytes, address) => {
    const message = parse(Buffer.from(bytes));
    const mapped = message.xorAddress(Attribute.xorMappedAddress);
    expect(addressText(mapped?.bytes ?? new Uint8Array(4))).toBe(address);
    expect(mapped?.port).toBe(32853);
    expect(message.verifyIntegrity(PASSWORD) && message.fingerprintHolds).toBe(true);
  });

  test('rejects integrity and fingerprint when a single bit is changed', () => {
    const bytes = Buffer.from(REQUEST);
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    const message = parse(bytes);
    expect(message.verifyIntegrity(PASSWORD)).toBe(false);
    expect(message.fingerprintHolds).toBe(false);
  });
});

describe('interoperability with werift', () => {
  test('writes messages that werift reads the same way', () => {
    const bytes = new StunWriter(Method.binding, MessageClass.success, TRANSACTION)
      .xorAddress(Attribute.xorMappedAddress, { bytes: Uint8Array.of(10, 1, 2, 3), port: 4567 })
      .integrity(Buffer.from(PASSWORD))
      .fingerprint()
      .finish();
    const theirs = parseMessage(bytes, Buffer.from(PASSWORD));
    expect(theirs?.messageMethod).toBe(methods.BINDING);
    expect(theirs?.messageClass).toBe(classes.RESPONSE);
    expect(theirs?.getAttributeValue('XOR-MAPPED-ADDRESS')).toEqual(['10.1.2.3', 4567]);
  });

  test('reads messages written by werift', () => {
    const theirs = new Message(methods.BINDING, classes.REQUEST, TRANSACTION);
    theirs.setAttribute('USERNAME', 'abc:defg').setAttribute('PRIORITY', 77).setAttribute('USE-CANDIDATE', null);
    theirs.addMessageIntegrity(Buffer.from(PASSWORD)).addFingerprint();
    const message = parse(theirs.bytes);
    expect(message.text(Attribute.username)).toBe('abc:defg');
    expect(message.uint32(Attribute.priority)).toBe(77);
    expect(message.has(Attribute.useCandidate)).toBe(true);
    expect(message.verifyIntegrity(PASSWORD) && message.fingerprintHolds).toBe(true);
  });

  test('round-trips methods, classes, errors and unknown attributes', () => {
    for (const method of Object.values(Method)) {
      for (const messageClass of Object.values(MessageClass)) {
        const bytes = new StunWriter(method, messageClass, TRANSACTION).error(StunError.staleNonce).finish();
        const message = parse(bytes);
        expect(message.method).toBe(method);
        expect(message.messageClass).toBe(messageClass);
        expect(message.errorCode).toBe(438);
      }
    }
    const strange = new StunWriter(Method.allocate, MessageClass.request, TRANSACTION)
      .uint32(0x7001, 1)
      .uint32(0xf001, 1)
      .uint32(0x0003, 1)
      .finish();
    expect(parse(strange).unknownRequired).toEqual([0x7001, 0x0003]);
  });

  test('refuses a message that does not fit its buffer', () => {
    const writer = new StunWriter(Method.data, MessageClass.indication, TRANSACTION, 8);
    expect(() => writer.bytes(Attribute.data, Buffer.alloc(20))).toThrow(RangeError);
  });
});

describe('limits', () => {
  test('ignores attributes after MESSAGE-INTEGRITY', () => {
    const bytes = new StunWriter(Method.binding, MessageClass.request, TRANSACTION)
      .text(Attribute.username, 'a:b')
      .integrity('key')
      .bytes(Attribute.useCandidate, Buffer.alloc(0))
      .finish();
    const message = parse(bytes);
    expect(message.has(Attribute.useCandidate)).toBe(false);
    expect(message.verifyIntegrity('key')).toBe(true);
  });

  test('refuses anything after FINGERPRINT', () => {
    const writer = new StunWriter(Method.binding, MessageClass.request, TRANSACTION).fingerprint();
    expect(StunMessage.parse(writer.uint32(Attribute.priority, 1).finish())).toBeUndefined();
  });

  test('refuses a flood of attributes', () => {
    const writer = new StunWriter(Method.binding, MessageClass.request, TRANSACTION, 1024);
    for (let i = 0; i <= MAX_ATTRIBUTES; i++) writer.bytes(0x8055, Buffer.alloc(0));
    expect(StunMessage.parse(writer.finish())).toBeUndefined();
  });

  test('refuses a known attribute of the wrong size', () => {
    const bytes = new StunWriter(Method.binding, MessageClass.request, TRANSACTION)
      .bytes(Attribute.priority, Buffer.alloc(3))
      .finish();
    expect(StunMessage.parse(bytes)).toBeUndefined();
  });
});

describe('garbage', () => {
  const readAll = (message: StunMessage): void => {
    for (const type of Object.values(Attribute)) {
      message.has(type);
      message.text(type);
      if ((message.bytes(type)?.length ?? 0) >= 4) message.uint32(type);
      message.xorAddress(type);
    }
    message.peerAddresses();
    expect([true, false]).toContain(message.verifyIntegrity('key'));
    expect([true, false]).toContain(message.fingerprintHolds);
    expect(message.unknownRequired.length).toBeLessThanOrEqual(MAX_ATTRIBUTES);
  };

  test('random bytes never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const message = StunMessage.parse(Buffer.from(bytes));
        if (message) readAll(message);
      }),
      { numRuns: fuzzRuns(6_000) },
    );
  });

  test('random bytes after a valid header never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 0, maxLength: 160 }), fc.nat(0x3fff), (body, type) => {
        const bytes = Buffer.alloc(20 + (body.length & ~3));
        bytes.writeUInt16BE(type, 0);
        bytes.writeUInt16BE(bytes.length - 20, 2);
        bytes.writeUInt32BE(0x2112a442, 4);
        bytes.set(body.subarray(0, body.length & ~3), 20);
        const message = StunMessage.parse(bytes);
        if (message) readAll(message);
      }),
      { numRuns: fuzzRuns(6_000) },
    );
  });

  test('never throws on a valid message with a few bytes changed, nor accepts it as authentic', () => {
    const changes = fc.array(fc.tuple(fc.nat(REQUEST.length - 1), fc.integer({ min: 1, max: 255 })), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(changes, (list) => {
        const bytes = Buffer.from(REQUEST);
        for (const [at, mask] of list) bytes[at] = (bytes[at] ?? 0) ^ mask;
        const message = StunMessage.parse(bytes);
        if (message === undefined) return;
        readAll(message);
        const sealed = bytes.subarray(0, 88).equals(REQUEST.subarray(0, 88));
        if (!sealed) expect(message.verifyIntegrity(PASSWORD)).toBe(false);
      }),
      { numRuns: fuzzRuns(6_000) },
    );
  });
});
