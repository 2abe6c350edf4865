import fc from 'fast-check';
import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { readControl, writeAck, writeOpen } from './dcep.js';

test('reads what it writes, with every kind of channel and any alphabet', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 30 }).filter((text) => Buffer.byteLength(text) <= 64);
  const limit = fc.nat(0xffff_ffff);
  const kind = fc.oneof(
    fc.record({ ordered: fc.boolean() }),
    fc.record({ ordered: fc.boolean(), maxRetransmits: limit }),
    fc.record({ ordered: fc.boolean(), maxLifetimeMs: limit }),
  );
  const channel = fc.record({ label: name.filter((text) => text !== ''), protocol: name, kind });
  fc.assert(
    fc.property(channel, (given) => {
      expect(readControl(writeOpen(given))).toEqual({ type: 'open', channel: given });
    }),
    { numRuns: fuzzRuns(200) },
  );
  expect(readControl(writeAck())).toEqual({ type: 'ack' });
});

test('refuses a message that is truncated, too long or of an unknown type, and never throws', () => {
  const open = writeOpen({ label: 'chat', protocol: 'v1', kind: { ordered: true } });
  const unknown = Buffer.from(open);
  unknown[1] = 0x03;
  const longNames = [
    { label: 'l'.repeat(65), protocol: '' },
    { label: 'l', protocol: 'p'.repeat(65) },
  ];
  for (const names of longNames) {
    expect(readControl(writeOpen({ ...names, kind: { ordered: true } }))).toEqual({ type: 'invalid' });
  }
  for (const message of [open.subarray(0, -1), Buffer.concat([open, Buffer.of(0)]), unknown, Buffer.alloc(0)]) {
    expect(readControl(message)).toEqual({ type: 'invalid' });
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      bytes[0] = 3;
      readControl(Buffer.from(bytes));
    }),
    { numRuns: fuzzRuns(500) },
  );
});
