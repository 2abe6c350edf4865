import { describe, expect, test } from '@jest/globals';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { MAX_EVENT_LENGTH, parseClientEvent } from './client-event.js';
import { nestsDeeper } from './json.js';

const custom = (type: string, data: unknown) => JSON.stringify({ type: 'custom', data: { type, data } });
const OFFER = {
  sdpOffer: { type: 'offer', sdp: 'v=0' },
  trackIdToTrackMetadata: { t: { a: 1 }, u: null },
  trackIdToTrackBitrates: { t: 5, u: { l: 1, m: -1, h: 'x', q: 2 }, w: 'bad' },
  midToTrackId: { '0': 't', '1': 7, '2': '' },
};

describe('client media events', () => {
  test('parses the maps of an offer and drops entries that are not track ids or bitrates', () => {
    expect(parseClientEvent(custom('sdpOffer', OFFER))).toEqual({
      type: 'sdpOffer',
      sdp: 'v=0',
      midToTrackId: new Map([['0', 't']]),
      metadata: new Map<string, unknown>([
        ['t', { a: 1 }],
        ['u', null],
      ]),
      bitrates: new Map([
        ['t', { h: 5 }],
        ['u', { l: 1 }],
      ]),
    });
  });

  test('accepts an offer without bitrates and with a null mid map', () => {
    const { sdpOffer, trackIdToTrackMetadata } = OFFER;
    expect(
      parseClientEvent(custom('sdpOffer', { sdpOffer, trackIdToTrackMetadata, midToTrackId: null })),
    ).toMatchObject({
      midToTrackId: new Map(),
      bitrates: new Map(),
    });
  });

  test('caps a bitrate at 1 Gbit/s, however large the number', () => {
    const offer = { ...OFFER, trackIdToTrackBitrates: { t: 1.7e308, u: { l: 1e9, m: 1e10, h: 2 } } };
    expect(parseClientEvent(custom('sdpOffer', offer))).toMatchObject({
      bitrates: new Map([
        ['t', { h: 1e9 }],
        ['u', { l: 1e9, m: 1e9, h: 2 }],
      ]),
    });
    expect(
      parseClientEvent(custom('trackVariantBitrates', { trackId: 't', variantBitrates: { h: 1.7e308 } })),
    ).toMatchObject({ bitrates: { h: 1e9 } });
  });

  test('ignores a bitrate that overflows a number', () => {
    const endless = custom('sdpOffer', OFFER).replace('"t":5', '"t":1e999');
    expect(parseClientEvent(endless)).toMatchObject({ bitrates: new Map([['u', { l: 1 }]]) });
  });

  test('ignores track ids longer than 1,024 characters', () => {
    const longest = 't'.repeat(1_024);
    const offer = { ...OFFER, midToTrackId: { '0': longest, '1': `${longest}t` } };
    expect(parseClientEvent(custom('sdpOffer', offer))).toMatchObject({ midToTrackId: new Map([['0', longest]]) });
  });

  test.each(['sdpOffer', 'trackIdToTrackMetadata', 'midToTrackId'])('an offer without %s is invalid', (key) => {
    expect(parseClientEvent(custom('sdpOffer', { ...OFFER, [key]: undefined })).type).toBe('invalid');
  });

  test('accepts unwrapped custom events but rejects wrapped plain events', () => {
    expect(parseClientEvent('{"type":"renegotiateTracks"}').type).toBe('renegotiateTracks');
    expect(parseClientEvent(custom('renegotiateTracks', undefined)).type).toBe('renegotiateTracks');
    expect(parseClientEvent(custom('connect', { metadata: 1 })).type).toBe('invalid');
  });

  test('rejects an event that is too long', () => {
    expect(parseClientEvent(`"${'x'.repeat(MAX_EVENT_LENGTH)}"`)).toEqual({ type: 'invalid', reason: 'too long' });
  });

  test('gives a refusal reason that contains nothing the client sent', () => {
    expect(parseClientEvent('{"type":"secret","data":"secret"}')).toEqual({ type: 'invalid', reason: 'unknown type' });
  });

  test('returns an event for any text and never throws', () => {
    const types = [
      'connect',
      'custom',
      'sdpOffer',
      'updateTrackMetadata',
      'trackVariantBitrates',
      'muteTrack',
      'setTrackPaused',
      'candidate',
    ];
    const key = fc.constantFrom('type', 'data', 'trackId', 'sdpOffer', 'midToTrackId', 'trackIdToTrackMetadata', 'sdp');
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        fc.constantFrom(...types, 'offer', 'l', 1, null, true),
        fc.array(tie('any'), { maxLength: 2 }),
        tie('object'),
      ),
      object: fc.dictionary(key, tie('any'), { maxKeys: 3 }),
    }));
    const text = fc.oneof(
      value.object.map((object) => JSON.stringify(object)),
      fc.string({ unit: codePoint(fc) }),
      fc.json(),
    );
    fc.assert(
      fc.property(text, (garbage) => {
        expect(typeof parseClientEvent(garbage).type).toBe('string');
      }),
      { numRuns: fuzzRuns(12_000) },
    );
  });
});

describe('JSON nesting depth', () => {
  test('detects deep nesting without parsing', () => {
    expect(nestsDeeper(`${'['.repeat(10)}${']'.repeat(10)}`, 10)).toBe(false);
    expect(nestsDeeper(`${'['.repeat(11)}${']'.repeat(11)}`, 10)).toBe(true);
    expect(nestsDeeper(`[${'{},'.repeat(100)}{}]`, 2)).toBe(false);
  });

  test('does not count brackets inside strings', () => {
    expect(nestsDeeper(JSON.stringify(`\\"${'['.repeat(100)}`), 10)).toBe(false);
  });
});
