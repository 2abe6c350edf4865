import { describe, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { connectionLimits } from './descriptors.js';

describe('connection limits', () => {
  const limitsWith = (files: number, open = 56) => {
    const log = createLogger({ sink: () => undefined });
    return { limits: connectionLimits(log, { files, open }), events: log.recent.last().map(({ event }) => event) };
  };

  test('uses the documented limits if the system allows enough files', () => {
    const documented = { limits: { http: undefined, relay: undefined }, events: [] };
    for (const files of [32_768, 1_048_576, Number.POSITIVE_INFINITY]) expect(limitsWith(files)).toEqual(documented);
  });

  test('connection limits leave a third of scarce descriptors to media and files, and log one line', () => {
    expect(limitsWith(256)).toEqual({ limits: { http: 100, relay: 20 }, events: ['node.few_descriptors'] });
  });

  test('lowers the limits without a log line if that hardly matters', () => {
    expect(limitsWith(20_056)).toEqual({ limits: { http: 10_000, relay: 2_000 }, events: [] });
  });

  test('allows at least one connection', () => {
    expect(limitsWith(32, 64).limits).toEqual({ http: 1, relay: 1 });
  });

  test('reads the limits from the system', () => {
    const { http } = connectionLimits(createLogger({ sink: () => undefined }));
    expect(http ?? 1).toBeGreaterThan(0);
  });
});
