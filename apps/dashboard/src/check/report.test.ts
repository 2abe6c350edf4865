import { describe, expect, test } from '@jest/globals';
import { checkIn, tokenIn } from './check-address.js';
import { addressOf, type Finding, type Findings, notOffered, pathFinding, reportOf, verdictOf } from './report.js';

const good: Finding = { state: 'good', text: 'Packets pass.', ms: 12 };
const bad: Finding = { state: 'bad', text: 'No packets pass.', ask: 'Ask for UDP.' };
const absent = notOffered('tls');

describe('a way to the server', () => {
  test('reports the time of a way that works', () => {
    expect(pathFinding('udp', 'turn:203.0.113.7:50000?transport=udp', { ms: 31 })).toEqual({
      state: 'good',
      text: 'Packets pass over UDP, the best way for picture and sound.',
      ms: 31,
    });
  });

  test.each([
    ['udp', 'turn:203.0.113.7:50000?transport=udp', 'let UDP pass to 203.0.113.7, port 50000'],
    ['tcp', 'turn:[2001:db8::7]:49999?transport=tcp', 'let TCP connections to [2001:db8::7], port 49999 pass'],
    [
      'tls',
      'turns:turn.example.com:443?transport=tcp',
      'let TLS connections to turn.example.com, port 443 pass unopened',
    ],
  ] as const)('says what to ask for when the way over %s fails', (transport, url, wanted) => {
    const finding = pathFinding(transport, url, { refused: false });
    expect(finding.state).toBe('bad');
    expect(finding.ask).toContain(`Ask the administrator of the network to ${wanted}`);
  });

  test('asks nothing of the administrator when another program answers', () => {
    const { ask } = pathFinding('tcp', 'turn:203.0.113.7:80?transport=tcp', { refused: true });
    expect(ask).not.toContain('administrator');
  });

  test('has an address even if its URL is odd', () => {
    expect(addressOf('stun:x')).toEqual({ host: '', port: '' });
  });
});

test.each<[string, Findings, string | undefined]>([
  ['unfinished', { udp: good, tcp: good }, undefined],
  ['good over UDP', { udp: good, tcp: bad, tls: absent }, 'Calls work from this network.'],
  ['good over TCP', { udp: bad, tcp: good, tls: good }, 'over TCP'],
  ['good over TLS', { udp: bad, tcp: absent, tls: good }, 'over TLS'],
  ['bad', { udp: bad, tcp: bad, tls: absent }, 'Calls do not work from this network.'],
])('gives the verdict about a network that is %s', (_, findings, words) => {
  if (words === undefined) expect(verdictOf(findings)).toBeUndefined();
  else expect(verdictOf(findings)).toContain(words);
});

test('has a line for each check, and what to ask for', () => {
  const findings: Findings = { camera: { state: 'good', text: 'A camera.' }, udp: bad, tcp: good, tls: absent };
  const text = reportOf(findings, { server: 'media.example.com', browser: 'Browser/1', at: new Date(0) });
  expect(text.split('\n')).toEqual([
    'Check of media.example.com, 1970-01-01T00:00:00.000Z',
    'Calls work from this network over TCP, with more delay than over UDP.',
    'ok   Camera: A camera.',
    'FAIL UDP: No packets pass.',
    '     Ask for UDP.',
    'ok   TCP: Packets pass. (12 ms)',
    '-    TLS: This server does not offer TLS, for networks that pass web pages only.',
    'Browser/1',
  ]);
});

test.each([
  ['#/check', { token: '' }],
  ['#/check&invitation=abc.def', { token: 'abc.def', call: '#invitation=abc.def' }],
  ['#/check&invitation=abc.def&key=k-_', { token: 'abc.def', call: '#invitation=abc.def&key=k-_' }],
  ['#/check&token=abc.def', { token: 'abc.def' }],
])('reads the check from the address %s', (hash, address) => {
  expect(checkIn(hash)).toEqual(address);
});

test.each(['', '#/rooms', '#/checks', '#invitation=abc', '#room=check'])('the address %j is not', (hash) => {
  expect(checkIn(hash)).toBeUndefined();
});

test('accepts a link in place of its token', () => {
  expect(tokenIn(' https://media.example.com/#invitation=abc.def ')).toBe('abc.def');
  expect(tokenIn('abc.def\n')).toBe('abc.def');
});
