import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { isSipError } from '../errors.js';
import { AudioNegotiator } from './negotiation.js';
import { parseSdp, writeSdp } from './sdp.js';

const negotiator = (codecs: ('PCMU' | 'PCMA' | 'opus')[] = ['PCMU', 'PCMA', 'opus']) =>
  new AudioNegotiator({
    address: '192.0.2.1',
    port: 40_000,
    codecs,
    session: { id: 7, version: 0, origin: '192.0.2.1' },
  });
const description = (...media: string[]) =>
  Buffer.from(['v=0', 'o=- 1 3 IN IP4 192.0.2.9', 's=-', 'c=IN IP4 192.0.2.9', 't=0 0', ...media, ''].join('\r\n'));

describe('an offer', () => {
  test('lists codecs, telephone-event and our address, and counts its versions', () => {
    const ours = negotiator();
    const text = ours.offer().toString();
    expect(text).toBe(
      [
        'v=0',
        'o=- 7 1 IN IP4 192.0.2.1',
        's=-',
        'c=IN IP4 192.0.2.1',
        't=0 0',
        'm=audio 40000 RTP/AVP 0 8 111 101',
        'a=rtpmap:0 PCMU/8000',
        'a=rtpmap:8 PCMA/8000',
        'a=rtpmap:111 opus/48000/2',
        'a=fmtp:111 useinbandfec=1;stereo=0',
        'a=rtpmap:101 telephone-event/8000',
        'a=fmtp:101 0-15',
        'a=ptime:20',
        'a=sendrecv',
        '',
      ].join('\r\n'),
    );
    expect(ours.offer().toString()).toContain('o=- 7 2 ');
  });

  test('is answered with the first codec in common and the payload types of the other side', () => {
    const ours = negotiator();
    ours.offer();
    const agreed = ours.takeAnswer(
      description(
        'm=audio 5000 RTP/AVP 9 98 0 97',
        'a=rtpmap:98 OPUS/48000/2',
        'a=rtpmap:97 telephone-event/8000',
        'c=IN IP4 192.0.2.30',
      ),
    );
    expect(agreed).toMatchObject({
      codec: { name: 'opus' },
      sendType: 98,
      remote: { address: '192.0.2.30', port: 5000 },
      direction: 'sendrecv',
      eventTypes: { send: 97 },
    });
    expect([...agreed.receiveTypes]).toEqual([
      [0, 'PCMU'],
      [8, 'PCMA'],
      [111, 'opus'],
      [98, 'opus'],
    ]);
  });

  test.each([
    ['sendonly', 'recvonly'],
    ['recvonly', 'sendonly'],
    ['inactive', 'inactive'],
    ['sendrecv', 'sendrecv'],
  ])('is answered with %s, which makes us %s', (theirs, expected) => {
    const ours = negotiator();
    ours.offer();
    expect(ours.takeAnswer(description('m=audio 5000 RTP/AVP 0', `a=${theirs}`)).direction).toBe(expected);
  });

  test.each([
    ['another codec', description('m=audio 5000 RTP/AVP 9')],
    ['opus at another rate', description('m=audio 5000 RTP/AVP 96', 'a=rtpmap:96 opus/8000/1')],
    ['a rejected stream', description('m=audio 0 RTP/AVP 0')],
    ['video only', description('m=video 5000 RTP/AVP 96')],
    ['encryption that was not offered', description('m=audio 5000 RTP/SAVP 0')],
    ['a host name as address', description('m=audio 5000 RTP/AVP 0', 'c=IN IP4 media.test')],
    ['a port out of range', description('m=audio 70000 RTP/AVP 0')],
    ['an empty description', Buffer.alloc(0)],
    ['a description that is too long', Buffer.alloc(20_000, 'v=0\r\n')],
    ['too many lines', Buffer.from(`v=0\r\n${'a=x\r\n'.repeat(500)}`)],
    ['too many media sections', description(...Array.from({ length: 17 }, () => 'm=audio 5000 RTP/AVP 0'))],
  ])('cannot be answered with %s', (_, data) => {
    expect(() => negotiator().takeAnswer(data)).toThrow(expect.objectContaining({ code: 'SDP_UNUSABLE' }));
  });
});

describe('an answer', () => {
  test('accepts one audio stream, mirrors payload types and rejects the other sections in place', () => {
    const ours = negotiator(['PCMA']);
    const text = ours
      .answer(
        description(
          'm=video 6000 RTP/AVP 96 97',
          'm=audio 5000 RTP/AVP 0 8 100',
          'a=rtpmap:100 telephone-event/8000',
          'a=sendonly',
          'm=application 7000 UDP/BFCP *',
        ),
      )
      .toString();
    expect(text.split('\r\n').filter((line) => /^m=|^a=/.test(line))).toEqual([
      'm=video 0 RTP/AVP 96 97',
      'm=audio 40000 RTP/AVP 8 100',
      'a=rtpmap:8 PCMA/8000',
      'a=rtpmap:100 telephone-event/8000',
      'a=fmtp:100 0-15',
      'a=ptime:20',
      'a=recvonly',
      'm=application 0 UDP/BFCP *',
    ]);
    expect(ours.agreed).toMatchObject({ codec: { name: 'PCMA' }, sendType: 8, direction: 'recvonly' });
  });

  test('has the profile of the offer', () => {
    const text = negotiator().answer(description('m=audio 5000 RTP/AVPF 0')).toString();
    expect(text).toContain('m=audio 40000 RTP/AVPF 0\r\n');
  });

  test('changes nothing when the offer has nothing in common with ours', () => {
    const ours = negotiator();
    ours.offer();
    const before = ours.takeAnswer(description('m=audio 5000 RTP/AVP 0'));
    expect(() => ours.answer(description('m=audio 5000 RTP/AVP 9'))).toThrow(
      expect.objectContaining({ code: 'SDP_UNUSABLE' }),
    );
    expect(ours.agreed).toBe(before);
  });
});

test('parses what it writes', () => {
  const sdp = parseSdp(negotiator().offer());
  const { media } = sdp;
  expect(
    parseSdp(writeSdp({ address: '2001:db8::1', session: { id: 1, version: 1, origin: '2001:db8::1' }, media }))
      .media[0],
  ).toMatchObject({
    address: '2001:db8::1',
    formats: media[0]?.formats,
  });
});

test('parses or rejects any text, and throws nothing else', () => {
  const line = fc.oneof(
    fc.constantFrom(
      'v=0',
      'c=IN IP4 192.0.2.9',
      'c=IN IP6 ::',
      'm=audio 5000 RTP/AVP 0 8 101',
      'm=audio 99999 RTP/AVP 0',
      'a=rtpmap:101 telephone-event/8000',
      'a=rtpmap:0 opus/48000/2',
      'a=fmtp:0 x',
      'a=inactive',
      'o=',
      'o=- 1 2',
      '',
      'm=',
    ),
    fc.string({ maxLength: 20 }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 16 }), fc.boolean(), (lines, started) => {
      const data = Buffer.from([...(started ? ['v=0'] : []), ...lines].join('\r\n'));
      for (const read of [
        parseSdp,
        (all: Buffer) => negotiator().takeAnswer(all),
        (all: Buffer) => negotiator().answer(all),
      ]) {
        try {
          read(data);
        } catch (error) {
          if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
        }
      }
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});
