/** The messages of RFC 4475 that are text rather than byte dumps, run against the whole user agent. */
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { isSipError } from './errors.js';
import { MessageLog } from './message-log.js';
import { parseMessage } from './message.js';
import { StreamFramer } from './stream-framer.js';
import { TestAgent } from './testing/test-agent.js';

const lines = (...text: string[]) => text.join('\r\n');
const body = lines(
  'v=0',
  'o=mhandley 29739 7272939 IN IP4 192.0.2.3',
  's=-',
  'c=IN IP4 192.0.2.4',
  't=0 0',
  'm=audio 49217 RTP/AVP 0 12',
  'm=video 3227 RTP/AVP 31',
  'a=rtpmap:31 LPC',
  '',
);
const usual = [
  'To: sip:j.user@example.com',
  'From: sip:caller@example.net;tag=134161461246',
  'Max-Forwards: 7',
  'Call-ID: torture.0ha0isndaksdjasdf3234nas',
  'CSeq: 8 INVITE',
  'Via: SIP/2.0/UDP 192.0.2.15;branch=z9hG4bKkdjuw',
  'Contact: <sip:caller@host.example.net>',
  'Content-Type: application/sdp',
];
/** The usual request, with some lines replaced by name and others added. */
function invite(
  options: { start?: string; change?: Record<string, string | undefined>; add?: string[]; body?: string } = {},
) {
  const { start = 'INVITE sip:user@example.com SIP/2.0', change = {}, add = [] } = options;
  const fields = usual.flatMap((line) => {
    const name = line.slice(0, line.indexOf(':'));
    if (!(name in change)) return [line];
    const value = change[name];
    return value === undefined ? [] : [value];
  });
  return lines(start, ...fields, ...add, '', options.body ?? body);
}
const options = (change: Record<string, string | undefined>, add: string[] = []) =>
  invite({
    start: 'OPTIONS sip:user@example.com SIP/2.0',
    change: { CSeq: 'CSeq: 8 OPTIONS', ...change },
    add,
    body: '',
  });

/** Returns the user agent's response; `dropped` if there is none, `refused` if the message cannot even be parsed. */
function outcome(text: string): string {
  const agent = new TestAgent();
  let message;
  try {
    message = parseMessage(Buffer.from(text));
  } catch (error) {
    if (isSipError(error, 'SIP_MALFORMED')) return 'refused';
    throw error;
  }
  agent.agent.receive(message, { transport: 'UDP', host: '192.0.2.15', port: 5060 });
  return agent.titles()[0] ?? 'dropped';
}

describe('a torture message', () => {
  test.each([
    [
      '3.1.1.2 intmeth: every character a method may contain',
      invite({
        start:
          "!interesting-Method0123456789_*+`.%indeed'~ sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com SIP/2.0",
        change: { CSeq: "CSeq: 8 !interesting-Method0123456789_*+`.%indeed'~" },
      }),
      "405 !interesting-Method0123456789_*+`.%indeed'~",
    ],
    [
      '3.1.1.3 esc01: escapes in URIs',
      options({ To: 'To: <sip:sips%3Auser%40example.com@example.net>' }),
      '200 OPTIONS',
    ],
    ['3.1.1.4 escnull: an escaped NUL', options({ To: 'To: sip:null-%00-null@example.com' }), '200 OPTIONS'],
    [
      '3.1.1.6 lwsdisp: no blank between name and bracket',
      options({ From: 'From: caller<sip:caller@example.com>;tag=323' }),
      '200 OPTIONS',
    ],
    [
      '3.1.1.7 longreq: long values',
      options(
        {
          To: `To: "I have a user name of ${'extreme'.repeat(60)} proportion"<sip:user@example.com:6000;unknownparam1=very${'long'.repeat(40)}value;longparam${'name'.repeat(30)}=shortvalue>`,
        },
        [`Unknown-${'Long'.repeat(40)}-Name: ${'unknown'.repeat(100)}`],
      ),
      '200 OPTIONS',
    ],
    [
      '3.1.1.8 dblreq: more data after the end of the message',
      `${options({}, ['Content-Length: 0'])}INVITE sip:joe@example.com SIP/2.0\r\n`,
      '200 OPTIONS',
    ],
    [
      '3.1.1.9 semiuri: semicolons in the user part',
      invite({
        start: 'OPTIONS sip:user;par=u%40example.net@example.com SIP/2.0',
        change: { CSeq: 'CSeq: 8 OPTIONS' },
      }),
      '200 OPTIONS',
    ],
    [
      '3.1.1.10 transports: Vias of every kind',
      options({
        Via: lines(
          'Via: SIP/2.0/UDP t1.example.com;branch=z9hG4bKkdjuw',
          'Via: SIP/2.0/SCTP t2.example.com;branch=z9hG4bKklasjdhf',
          'Via: SIP/2.0/TLS t3.example.com;branch=z9hG4bK2980unddj',
          'Via: SIP/2.0/UNKNOWN t4.example.com;branch=z9hG4bKasd0f3en',
        ),
      }),
      '200 OPTIONS',
    ],
    [
      '3.1.1.11 mpart01: a multipart body',
      invite({
        start: 'MESSAGE sip:kumiko@example.org SIP/2.0',
        change: { CSeq: 'CSeq: 1 MESSAGE', 'Content-Type': 'Content-Type: multipart/mixed;boundary=7a9cbec02ceef655' },
      }),
      '405 MESSAGE',
    ],
    [
      '3.1.2.1 badinv01: stray separators',
      invite({ change: { Via: 'Via: SIP/2.0/UDP 192.0.2.15;;,;,,' } }),
      '480 INVITE',
    ],
    ['3.1.2.2 clerr: Content-Length beyond the end', invite({ add: ['Content-Length: 9999'] }), 'refused'],
    ['3.1.2.3 ncl: a negative Content-Length', invite({ add: ['Content-Length: -999'] }), 'refused'],
    ['3.1.2.4 scalar02: a CSeq beyond 2^31', options({ CSeq: 'CSeq: 36893488147419103232 OPTIONS' }), 'dropped'],
    [
      '3.1.2.6 quotbal: an unclosed quote',
      invite({ change: { To: 'To: "Mr. J. User <sip:j.user@example.com>' } }),
      'dropped',
    ],
    [
      '3.1.2.7 ltgtruri: brackets around the request URI',
      invite({ start: 'INVITE <sip:user@example.com> SIP/2.0' }),
      '480 INVITE',
    ],
    [
      '3.1.2.8 lwsruri: a blank inside the request URI',
      invite({ start: 'INVITE sip:user@example.com; lr SIP/2.0' }),
      'refused',
    ],
    [
      '3.1.2.9 lwsstart: two blanks in the start line',
      invite({ start: 'INVITE  sip:user@example.com  SIP/2.0' }),
      'refused',
    ],
    [
      '3.1.2.10 trws: a blank at the end of the start line',
      invite({ start: 'OPTIONS sip:remote-target@example.com SIP/2.0  ' }),
      'refused',
    ],
    [
      '3.1.2.12 baddate: a date in an invalid time zone',
      options({}, ['Date: Fri, 01 Jan 2010 16:00:00 EST']),
      '200 OPTIONS',
    ],
    [
      '3.1.2.13 regbadct: a Contact with unbracketed headers',
      invite({
        start: 'REGISTER sip:example.com SIP/2.0',
        change: { CSeq: 'CSeq: 8 REGISTER', Contact: 'Contact: sip:user@example.com?Route=%3Csip:sip.example.com%3E' },
      }),
      '405 REGISTER',
    ],
    [
      '3.1.2.14 badaspec: blanks inside an address',
      options({ To: 'To: "Watson, Thomas" < sip:t.watson@example.org >' }),
      '200 OPTIONS',
    ],
    [
      '3.1.2.15 baddn: a display name that needs quotes',
      options({ From: 'From: Bell, Alexander <sip:a.g.bell@example.com>;tag=43' }),
      '200 OPTIONS',
    ],
    ['3.1.2.16 badvers: another version', invite({ start: 'OPTIONS sip:t.watson@example.org SIP/7.0' }), 'refused'],
    ['3.1.2.17 mismatch01: two methods', invite({ start: 'OPTIONS sip:user@example.com SIP/2.0' }), '400 INVITE'],
    [
      '3.1.2.18 mismatch02: an unknown method and INVITE',
      invite({ start: 'NEWMETHOD sip:user@example.com SIP/2.0' }),
      '400 INVITE',
    ],
    [
      '3.1.2.19 bigcode: a status out of range',
      lines('SIP/2.0 4294967301 better not break the receiver', ...usual, '', ''),
      'refused',
    ],
    [
      '3.2.1 badbranch: a cookie with nothing after it',
      options({ Via: 'Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK' }),
      '200 OPTIONS',
    ],
    [
      '3.3.1 insuf: without Call-ID, From and To',
      invite({ change: { 'Call-ID': undefined, From: undefined, To: undefined } }),
      'dropped',
    ],
    [
      '3.3.2 unkscm: an unknown scheme',
      invite({
        start: 'OPTIONS nobodyKnowsThisScheme:totallyopaquecontent SIP/2.0',
        change: { CSeq: 'CSeq: 3 OPTIONS' },
      }),
      '200 OPTIONS',
    ],
    [
      '3.3.5 bext01: unsupported extensions',
      options({}, ['Require: nothingSupportsThis, nothingSupportsThisEither']),
      '420 OPTIONS',
    ],
    [
      '3.3.6 invut: a body of an unknown type',
      invite({ change: { 'Content-Type': 'Content-Type: application/unknownformat' } }),
      '480 INVITE',
    ],
    [
      '3.3.8 multi01: fields allowed once, present twice',
      options({ CSeq: lines('CSeq: 5 OPTIONS', 'CSeq: 59 OPTIONS') }, ['Call-ID: another']),
      '200 OPTIONS',
    ],
    ['3.3.9 mcl01: two lengths that differ', options({}, ['Content-Length: 13', 'Content-Length: 5']), 'refused'],
    ['3.3.11 zeromf: no hops left', options({ 'Max-Forwards': 'Max-Forwards: 0' }), '200 OPTIONS'],
    ['3.3.15 sdp01: an offer outside a call', invite({ change: { Contact: undefined } }), '480 INVITE'],
    [
      '3.4.1 inv2543: a caller of RFC 2543',
      lines(
        'INVITE sip:UserB@example.com SIP/2.0',
        'Via: SIP/2.0/UDP iftgw.example.com',
        'From: <sip:+13035551111@ift.client.example.net;user=phone>',
        'Record-Route: <sip:UserB@example.com;maddr=ss1.example.com>',
        'To: sip:+16505552222@ss1.example.net;user=phone',
        'Call-ID: inv2543.1717@ift.client.example.com',
        'CSeq: 56 INVITE',
        'Content-Type: application/sdp',
        '',
        body,
      ),
      '480 INVITE',
    ],
  ])('gets the right response: %s', (_, text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  test.each([
    [
      '3.1.1.12 unreason: characters of many scripts in the reason',
      'SIP/2.0 200 = 2**3 * 5**2 но сто девяносто девять - простое',
    ],
    ['3.1.1.13 noreason: no reason at all', 'SIP/2.0 100 '],
    ['3.3.10 bcast: a response to another request', 'SIP/2.0 200 OK'],
  ])('is parsed without any reaction: %s', (_, start) => {
    expect(outcome(lines(start, ...usual, '', ''))).toBe('dropped');
  });
});

describe('damaged input', () => {
  const seeds = [
    invite(),
    options({}),
    lines('SIP/2.0 200 OK', ...usual, '', body),
    lines('SIP/2.0 401 No', ...usual, 'WWW-Authenticate: Digest realm="r", nonce="n"', '', ''),
  ];
  const noise = fc.oneof(
    fc.constantFrom(',', ';', '"', '<', '>', '\r\n', ' ', '\\', ':', '%00', '=', '/', '@', '[', 'tag=', '99999999999'),
    fc.constantFrom('constructor:', '__proto__:', '\r', '\n', '\0', '\r\n\r\n', '\r\n ', 'Content-Length: 1\r\n'),
    fc.string({ maxLength: 6 }),
  );
  /** A valid message with a few pieces cut out, duplicated or replaced. */
  const mutated = fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(1200), fc.nat(20), noise), { minLength: 1, maxLength: 6 }),
    )
    .map(([seed, changes]) =>
      changes.reduce((text, [at, cut, piece]) => text.slice(0, at) + piece + text.slice(at + cut), seed),
    );

  test('never breaks a ringing phone', () => {
    const agent = new TestAgent();
    agent.agent.register({ expiresSeconds: 60, onEvent: () => {} });
    agent.agent.dial({
      number: '1',
      media: { address: '192.0.2.1', port: 4000 },
      codecs: ['PCMU'],
      ringTimeoutMs: 1e9,
      onEvent: () => {},
    });
    // A phone logs every message it receives.
    const log = new MessageLog(() => 0);
    const targets = agent.take();
    fc.assert(
      fc.property(mutated, fc.boolean(), fc.nat(1), (text, aimed, at) => {
        let message;
        try {
          message = parseMessage(Buffer.from(text));
        } catch (error) {
          if (isSipError(error, 'SIP_MALFORMED')) return;
          throw error;
        }
        log.add('in', message, { transport: 'UDP', host: '192.0.2.15', port: 5060 });
        const target = targets[at];
        if (aimed && message.kind === 'response' && target !== undefined) {
          // Make it look like the response to what we just sent.
          for (const name of ['Via', 'CSeq', 'Call-ID', 'From']) message.headers.set(name, ...target.headers.all(name));
        }
        agent.agent.receive(message, { transport: 'UDP', host: '192.0.2.15', port: 5060 });
        agent.take();
        agent.lookups.length = 0;
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    agent.agent.close();
    expect(agent.clock.pending).toBe(0);
  });

  test('never breaks a phone in a call', () => {
    const agent = new TestAgent('TCP');
    let call = '';
    const dial = () => {
      agent.agent.dial({
        number: '1',
        media: { address: '192.0.2.1', port: 4000 },
        codecs: ['PCMU'],
        ringTimeoutMs: 1e9,
        onEvent: () => {},
      });
      const request = agent.request('INVITE');
      agent.answer(request, 200, {
        headers: [['Contact', '<sip:x@192.0.2.20>']],
        body: body.replace('RTP/AVP 0 12', 'RTP/AVP 0'),
      });
      agent.take();
      call = lines(
        `To: ${request.headers.get('From')}`,
        'From: <sip:1@pbx.test>;tag=peer',
        `Call-ID: ${request.headers.get('Call-ID')}`,
      );
    };
    dial();
    let sequence = 0;
    fc.assert(
      fc.property(
        fc.constantFrom('INVITE', 'UPDATE', 'INFO', 'ACK', 'OPTIONS', 'BYE', 'CANCEL'),
        fc.array(fc.tuple(fc.nat(900), fc.nat(12), noise), { maxLength: 4 }),
        (method, changes) => {
          sequence += 1;
          const good = lines(
            `${method} sip:room@192.0.2.1 SIP/2.0`,
            `Via: SIP/2.0/TCP h;branch=z9hG4bK${sequence}`,
            call,
            `CSeq: ${sequence} ${method}`,
            'Contact: <sip:y@192.0.2.21>',
            'Content-Type: application/sdp',
            '',
            body,
          );
          const text = changes.reduce((all, [at, cut, piece]) => all.slice(0, at) + piece + all.slice(at + cut), good);
          try {
            agent.agent.receive(parseMessage(Buffer.from(text)), { transport: 'TCP', host: '192.0.2.10', port: 5060 });
          } catch (error) {
            if (!isSipError(error, 'SIP_MALFORMED')) throw error;
          }
          agent.take();
          agent.lookups.length = 0;
          // The transactions of a call keep their state for 32 s.
          agent.clock.advance(100);
          agent.take();
          if (agent.agent.activity.calls === 0) dial();
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
    agent.agent.close();
    expect(agent.clock.pending).toBe(0);
  });

  test('is split or rejected as a stream', () => {
    fc.assert(
      fc.property(fc.array(mutated, { maxLength: 3 }), fc.nat(400), (texts, cut) => {
        const stream = Buffer.from(texts.join(''));
        const framer = new StreamFramer();
        try {
          framer.push(stream.subarray(0, cut));
          framer.push(stream.subarray(cut));
        } catch (error) {
          if (!isSipError(error, 'SIP_MALFORMED')) throw error;
        }
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
