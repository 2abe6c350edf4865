import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { isSipError } from './errors.js';
import { splitList } from './headers.js';
import { parseMessage, type SipMessage, type SipRequest, writeMessage } from './message.js';
import { StreamFramer } from './stream-framer.js';
import { parseCSeq, parseNameAddress, parseUri, parseVia } from './values.js';

const invite = [
  'INVITE sip:vivekg@chair-dnrc.example.com;unknownparam SIP/2.0',
  'TO :',
  ' sip:vivekg@chair-dnrc.example.com ;   tag    = 1918181833n',
  'from   : "J Rosenberg \\\\\\""       <sip:jdrosen@example.com>',
  '  ;',
  '  tag = 98asjd8',
  'MaX-fOrWaRdS: 0068',
  'Call-ID: wsinv.ndaksdj@192.0.2.1',
  'Content-Length   : 4',
  'cseq: 0009',
  '  INVITE',
  'Via  : SIP  /   2.0',
  ' /UDP',
  '    192.0.2.2;branch=390skdjuw',
  's :',
  'v:  SIP  / 2.0  / TCP     spindle.example.com   ;',
  '  branch  =   z9hG4bK9ikj8  ,',
  ' SIP  /    2.0   / UDP  192.168.255.111   ; branch=',
  ' z9hG4bK30239',
  'm:"Quoted string \\"\\"" <sip:jdrosen@example.com> ; newparam =',
  '      newvalue ;',
  '  secondparam ; q = 0.33',
  '',
  'body',
].join('\r\n');

/** Runs `read`. Anything but a result or a SipParseError fails the test. */
function readable(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (isSipError(error, 'SIP_MALFORMED')) return false;
    throw error;
  }
}

describe('a SIP message', () => {
  test('is parsed with folded lines, compact names, odd spacing and lists of values (RFC 4475, 3.1.1.1)', () => {
    const message = parseMessage(Buffer.from(invite)) as SipRequest;
    expect(message.method).toBe('INVITE');
    expect(message.body.toString()).toBe('body');
    expect(parseNameAddress(message.headers.get('To') ?? '').params.get('tag')).toBe('1918181833n');
    const from = parseNameAddress(message.headers.get('f') ?? '');
    expect(from).toMatchObject({ displayName: 'J Rosenberg \\"', uri: 'sip:jdrosen@example.com' });
    expect(parseCSeq(message.headers.get('CSeq') ?? '')).toEqual({ sequence: 9, method: 'INVITE' });
    const vias = message.headers.all('Via').map(parseVia);
    expect(vias.map((via) => `${via.transport} ${via.host} ${via.params.get('branch')}`)).toEqual([
      'UDP 192.0.2.2 390skdjuw',
      'TCP spindle.example.com z9hG4bK9ikj8',
      'UDP 192.168.255.111 z9hG4bK30239',
    ]);
    expect(parseNameAddress(message.headers.get('Contact') ?? '').params.get('newparam')).toBe('newvalue');
  });

  test('is the same after being written and parsed', () => {
    const message = parseMessage(Buffer.from(invite));
    const again = parseMessage(writeMessage(message));
    // The order of different fields is irrelevant (section 7.3.1).
    const fields = (m: SipMessage) => [...m.headers].filter(([name]) => name !== 'Content-Length').toSorted();
    expect(fields(again)).toEqual(fields(message));
    expect(again.headers.get('l')).toBe('4');
    expect(again.body).toEqual(message.body);
  });

  test.each([
    ['a body shorter than Content-Length', 'OPTIONS sip:a@b SIP/2.0\r\nContent-Length: 9\r\n\r\nx'],
    ['two lengths that differ', 'OPTIONS sip:a@b SIP/2.0\r\nl: 0\r\nContent-Length: 1\r\n\r\nx'],
    ['a negative length', 'OPTIONS sip:a@b SIP/2.0\r\nContent-Length: -999\r\n\r\n'],
    ['another version', 'OPTIONS sip:a@b SIP/7.0\r\n\r\n'],
    ['white space inside the request URI', 'INVITE sip:user@example.com; lr SIP/2.0\r\n\r\n'],
    ['a status above 699', 'SIP/2.0 4294967301 better not break the receiver\r\n\r\n'],
    ['a line that is not a header field', 'OPTIONS sip:a@b SIP/2.0\r\nnonsense\r\n\r\n'],
    ['256 header fields', `OPTIONS sip:a@b SIP/2.0\r\n${'a: b\r\n'.repeat(256)}\r\n`],
    ['a line of 8,193 characters', `OPTIONS sip:a@b SIP/2.0\r\nSubject: ${'x'.repeat(8_184)}\r\n\r\n`],
    ['no end of the header section', 'OPTIONS sip:a@b SIP/2.0\r\nTo: x\r\n'],
  ])('is rejected with %s', (_, text) => {
    expect(() => parseMessage(Buffer.from(text))).toThrow(expect.objectContaining({ code: 'SIP_MALFORMED' }));
  });

  test.each([
    ['255 header fields', `OPTIONS sip:a@b SIP/2.0\r\n${'a: b\r\n'.repeat(255)}\r\n`],
    ['a line of 8,192 characters', `OPTIONS sip:a@b SIP/2.0\r\nSubject: ${'x'.repeat(8_183)}\r\n\r\n`],
  ])('is accepted with %s', (_, text) => {
    expect(parseMessage(Buffer.from(text)).kind).toBe('request');
  });

  test.each(Object.getOwnPropertyNames(Object.prototype))('treats a header field called %s like any other', (name) => {
    const text = `OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\n${name}: x\r\n\r\n`;
    const message = parseMessage(Buffer.from(text));
    expect(message.headers.get(name)).toBe('x');
    expect(parseMessage(writeMessage(message)).headers.get(name)).toBe('x');
  });

  test.each(['\r', '\0', '\u001b'])('is rejected with the control character %j in a line', (character) => {
    const text = `OPTIONS sip:a@b SIP/2.0\r\nSubject: a${character}b\r\n\r\n`;
    expect(() => parseMessage(Buffer.from(text))).toThrow(expect.objectContaining({ code: 'SIP_MALFORMED' }));
  });

  test('has at most 255 header fields, even if many share a line', () => {
    const withContacts = (count: number): Buffer =>
      Buffer.from(
        `OPTIONS sip:a@b SIP/2.0\r\nContact: ${Array.from({ length: count }, () => '<sip:a@b>').join()}\r\n\r\n`,
      );
    expect(parseMessage(withContacts(255)).headers.all('Contact')).toHaveLength(255);
    expect(() => parseMessage(withContacts(256))).toThrow(expect.objectContaining({ code: 'SIP_MALFORMED' }));
  });

  test('throws only a SipParseError, whatever the bytes', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'INVITE sip:a@b SIP/2.0',
        'SIP/2.0 200 OK',
        '\r\n',
        '\r\n\r\n',
        'Via: SIP/2.0/UDP h',
        'l: 5',
        ' ',
        '"',
        '<',
        '>',
        ';tag',
        ',',
        '\\',
      ),
      fc.string({ maxLength: 12 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        readable(() => parseMessage(Buffer.from(text)));
        for (const read of [parseUri, parseNameAddress, parseVia, parseCSeq, splitList]) readable(() => read(text));
        const framer = new StreamFramer();
        readable(() => framer.push(Buffer.from(text)));
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('is parsed or rejected quickly even with thousands of spaces or quotes', () => {
    for (const filler of [' ', '"', ';', '\\"', ' ;a', ',']) {
      const text = filler.repeat(30_000);
      const before = process.cpuUsage();
      readable(() => parseMessage(Buffer.from(`OPTIONS sip:a@b SIP/2.0\r\nTo: ${text}\r\n\r\n`)));
      for (const read of [parseUri, parseNameAddress, parseVia, parseCSeq, splitList])
        readable(() => read(text.slice(0, 8192)));
      // Backtracking happens inside the engine, where only CPU time reveals it.
      expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
    }
  });
});

test('splits a stream into messages wherever it is broken, keep-alives included', () => {
  const one = writeMessage(parseMessage(Buffer.from(invite)));
  const stream = Buffer.concat([Buffer.from('\r\n\r\n'), one, Buffer.from('\r\n'), one, one]);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: stream.length }), { maxLength: 8 }), (cuts) => {
      const framer = new StreamFramer();
      const messages: SipMessage[] = [];
      let at = 0;
      for (const end of [...cuts, stream.length].toSorted((a, b) => a - b)) {
        messages.push(...framer.push(stream.subarray(at, end)));
        at = end;
      }
      expect(messages).toHaveLength(3);
      expect(messages.every((m) => m.body.toString() === 'body')).toBe(true);
    }),
    { numRuns: fuzzRuns(500) },
  );
});

describe('a SIP URI', () => {
  test('is parsed with all its parts', () => {
    expect(parseUri('sip:+49301234:secret@[2001:db8::1]:5070;transport=TCP;lr')).toEqual({
      scheme: 'sip',
      user: '+49301234',
      host: '2001:db8::1',
      port: 5070,
      params: new Map([
        ['transport', 'TCP'],
        ['lr', ''],
      ]),
    });
  });

  test.each(['tel:+49', 'sip:', 'sip:a@', 'sip:a@b:0', 'sip:a@b:99999', 'sip:a b@c', 'http://x'])(
    'is rejected when it is %s',
    (text) => {
      expect(() => parseUri(text)).toThrow(expect.objectContaining({ code: 'SIP_MALFORMED' }));
    },
  );
});
