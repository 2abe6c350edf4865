import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fuzzRuns } from '@bloom/time/testing';
import { failure, load, rejects, settings } from './testing/loading.js';

const NAME = 'JF_WEBRTC_ADVERTISED_PORTS';
const RANGE = { JF_WEBRTC_TURN_PORT_RANGE: '50000-50003' };

const mapped = (value: string, env: Record<string, string> = RANGE) =>
  settings({ ...env, [NAME]: value }).webrtc?.advertisedPorts;

test('advertises the ports of the workers unless JF_WEBRTC_ADVERTISED_PORTS maps them', () => {
  expect(settings(RANGE).webrtc?.advertisedPorts).toBeNull();
  expect(mapped('')).toBeNull();
  expect(mapped('+10000')).toEqual({ offset: 10_000, listed: new Map() });
  const listed = new Map([
    [50_000, 31_000],
    [50_001, 30_999],
  ]);
  expect(mapped('50000=31000 50001=30999')).toEqual({ offset: 0, listed });
  expect(mapped('  50000=31000  50001=30999 ')).toEqual({ offset: 0, listed });
});

test('takes a mapping that swaps ports, and entries for the ports of other nodes', () => {
  expect(mapped('50000=50001 50001=50000')?.listed.size).toBe(2);
  expect(mapped('50000=31000 60000=31001')?.listed.get(60_000)).toBe(31_001);
  expect(mapped('+15532')?.offset).toBe(15_532);
});

test('refuses a malformed mapping with its value', () => {
  const malformed = ['+', '+0', '+65536', '-1', '10000', '50000', '50000=', '=31000', '50000=31000=1', '0=1', '1=0'];
  rejects(NAME, [...malformed, '50000=65536', '50000:31000', '50000=31000,50001=31001', '5e4=31000'], RANGE);
});

test.each([
  ['50000=31000 50000=31001', 'has two entries for worker port 50000, 31000 and 31001: leave one of them'],
  ['50000=31000 50001=31000', 'advertises 31000 for worker ports 50000 and 50001: give each a port of its own'],
  [
    '50000=50001',
    'advertises 50001 for worker port 50000, and worker port 50001 has no entry: add one, or take it out of JF_WEBRTC_TURN_PORT_RANGE=50000-50003',
  ],
  ['60000=31000', 'has no entry for any worker port of JF_WEBRTC_TURN_PORT_RANGE=50000-50003: map those ports'],
  [
    '+15533',
    'makes 65536 of worker port 50003: end JF_WEBRTC_TURN_PORT_RANGE at 50002 or below, or take a smaller offset',
  ],
])('refuses to start with %s, and says what to do', (value, fault) => {
  expect(failure({ ...RANGE, [NAME]: value }).message).toBe(`${NAME}="${value}" ${fault}`);
});

test('refuses a mapping of ports that the system chooses', () => {
  for (const value of ['+1', '50000=31000']) {
    const { message, variable } = failure({ JF_WEBRTC_TURN_PORT_RANGE: '0-0', [NAME]: value });
    expect(variable).toBe(NAME);
    expect(message).toBe(
      `${NAME}="${value}" needs workers with known ports: set JF_WEBRTC_TURN_PORT_RANGE to those that are mapped, instead of 0-0`,
    );
  }
});

test('never advertises one port for two workers of an accepted mapping, nor one that does not exist', () => {
  const ports = fc.integer({ min: 49_998, max: 50_006 });
  const pairs = fc.array(fc.tuple(ports, ports), { minLength: 1, maxLength: 5 });
  const values = fc.oneof(
    pairs.map((all) => all.map((pair) => pair.join('=')).join(' ')),
    fc.integer({ min: 1, max: 65_535 }).map((offset) => `+${offset}`),
  );
  let accepted = 0;
  fc.assert(
    fc.property(values, (value) => {
      let found: ReturnType<typeof mapped>;
      try {
        found = mapped(value);
      } catch {
        return;
      }
      accepted += 1;
      const { listed, offset } = found!;
      const advertised = [0, 1, 2, 3].map((i) => listed.get(50_000 + i) ?? 50_000 + i + offset);
      expect(new Set(advertised).size).toBe(advertised.length);
      expect(Math.max(...advertised)).toBeLessThanOrEqual(65_535);
    }),
    { numRuns: fuzzRuns(500) },
  );
  expect(accepted).toBeGreaterThan(0);
});

test('warns of advertised ports that Chromium refuses, not of those behind the mapping', () => {
  const production = {
    NODE_ENV: 'production',
    JF_SERVER_API_TOKEN: 'a-token-of-the-backend',
    JF_WEBRTC_TURN_IP: '203.0.113.1',
  };
  const warned = (env: Record<string, string>) =>
    load({ ...production, ...env }).warnings.some(({ variable }) => variable === 'JF_WEBRTC_TURN_PORT_RANGE');
  expect(warned({ JF_WEBRTC_TURN_PORT_RANGE: '900-901' })).toBe(true);
  expect(warned({ JF_WEBRTC_TURN_PORT_RANGE: '900-901', [NAME]: '+30000' })).toBe(false);
  expect(warned({ ...RANGE, [NAME]: '50001=999' })).toBe(true);
  expect(warned({ ...RANGE, [NAME]: '50001=31000 40000=999' })).toBe(false);
  expect(warned({ JF_WEBRTC_TURN_PORT_RANGE: '50000-50000', [NAME]: '50000=443' })).toBe(false);
});
