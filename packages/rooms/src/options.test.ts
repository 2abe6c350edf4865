import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { COMPONENT_SCHEMAS, FileOptions } from './component-schemas.js';
import { parseOptions, PeerOptions, sendableOptions } from './options.js';
import { RoomError } from './room-service.js';

const invalid = { code: 'INVALID_OPTIONS', message: 'Invalid request body structure' };
const HlsOptions = COMPONENT_SCHEMAS.hls.options;
const RecordingOptions = COMPONENT_SCHEMAS.recording.options;
const SipOptions = COMPONENT_SCHEMAS.sip.options;
const s3 = { accessKeyId: 'a', secretAccessKey: 'b', region: 'c', bucket: 'd' };

function failure(act: () => unknown): { code: string; message: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof RoomError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('component options', () => {
  test('accepts absent, null and unknown options', () => {
    expect(parseOptions(HlsOptions, { lowLatency: null, later: 1 })).toEqual({ lowLatency: null });
    expect(parseOptions(RecordingOptions, {})).toEqual({});
    expect(parseOptions(HlsOptions, { s3, targetWindowDuration: 5 })).toEqual({ s3, targetWindowDuration: 5 });
  });

  test.each([
    [HlsOptions, { lowLatency: 'true' }],
    [HlsOptions, { subscribeMode: 'all' }],
    [HlsOptions, { targetWindowDuration: 0 }],
    [HlsOptions, { targetWindowDuration: 1.5 }],
    [HlsOptions, { s3: 'x' }],
    [HlsOptions, []],
    [HlsOptions, { s3: { ...s3, bucket: 1 } }],
    [RecordingOptions, { pathPrefix: 1 }],
    [SipOptions, { registrarCredentials: 'x' }],
    [PeerOptions, { enableSimulcast: 1 }],
  ])('reports options of the wrong type as an invalid structure: %#', (schema, given) => {
    expect(failure(() => parseOptions(schema, given))).toEqual(invalid);
  });

  test.each([
    [SipOptions, {}, 'registrarCredentials'],
    [SipOptions, { registrarCredentials: null }, 'registrarCredentials'],
    [SipOptions, { registrarCredentials: { address: 'a', password: 'p' } }, 'username'],
    [FileOptions, {}, 'filePath'],
    [FileOptions, { framerate: 'x' }, 'filePath'],
  ])('names a missing required option: %#', (schema, given, name) => {
    expect(failure(() => parseOptions(schema, given))).toEqual({
      code: 'MISSING_OPTION',
      message: `Required field "${name}" missing`,
    });
  });

  test('reports a framerate that is not an integer with its own message', () => {
    const refused = failure(() => parseOptions(FileOptions, { filePath: 'x', framerate: 2.5 }));
    expect(refused).toEqual({ code: 'INVALID_OPTIONS', message: 'Invalid framerate passed' });
    expect(parseOptions(FileOptions, { filePath: 'x', framerate: -1 })).toEqual({ filePath: 'x', framerate: -1 });
  });

  test('either accepts or refuses any input, and never throws anything else', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(HlsOptions, FileOptions, SipOptions, RecordingOptions),
        fc.jsonValue(),
        (s, given) => {
          try {
            parseOptions(s, given);
          } catch (error) {
            expect(error).toBeInstanceOf(RoomError);
          }
        },
      ),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});

test('sends options of usual depth unchanged', () => {
  const shallow = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(shallow, (options) => expect(sendableOptions(options)).toEqual(options)),
    { numRuns: fuzzRuns(2_000) },
  );
  const odd = JSON.parse('{"__proto__":{"a":1},"constructor":[null]}') as object;
  expect(JSON.stringify(sendableOptions(odd))).toBe(JSON.stringify(odd));
  expect(Object.getPrototypeOf(sendableOptions(odd))).toBe(Object.prototype);
  expect(sendableOptions(undefined)).toBeUndefined();
});

test('empties values nested deeper than any option but keeps their type', () => {
  const lists = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`) as unknown;
  expect(JSON.stringify(sendableOptions(lists))).toBe(`${'['.repeat(129)}${']'.repeat(129)}`);
  const objects = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) as unknown;
  expect(JSON.stringify(sendableOptions({ s3: objects, lowLatency: 'yes' }))).toBe(
    `{"s3":${'{"a":'.repeat(127)}{}${'}'.repeat(127)},"lowLatency":"yes"}`,
  );
});
