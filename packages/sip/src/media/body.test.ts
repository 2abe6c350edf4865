import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { SipHeaders } from '../headers.js';
import { sessionDescription } from './body.js';

const SDP = 'v=0\r\nm=audio 1 RTP/AVP 0\r\n';

function read(type: string | undefined, body: string): string | undefined {
  const headers = new SipHeaders(type === undefined ? [] : [['Content-Type', type]]);

  return sessionDescription({ headers, body: Buffer.from(body, 'latin1') })?.toString('latin1');
}

function part(type: string, content: string, more = ''): string {
  return `--sep\r\nContent-Type: ${type}\r\n${more}\r\n${content}\r\n`;
}

describe('the session description of a message', () => {
  test('finds the description in a body of type application/sdp', () => {
    expect(read('application/sdp;charset=utf-8', SDP)).toBe(SDP);
  });

  test('finds the description in a body without a type', () => {
    expect(read(undefined, SDP)).toBe(SDP);
  });

  test('returns an empty description without a body', () => {
    expect(read('application/sdp', '')).toBe('');
  });

  test('returns undefined for a body of another type', () => {
    expect(read('text/plain', SDP)).toBeUndefined();
  });

  test('finds the application/sdp part before ISUP', () => {
    const body = `${part('application/sdp', SDP)}${part('application/isup', 'xyz')}--sep--\r\n`;
    expect(read('multipart/mixed;boundary=sep', body)).toBe(SDP);
  });

  test('finds the application/sdp part after a preamble and ISUP', () => {
    const body = `For old readers.\r\n${part('application/isup', '\x00\x01')}${part('Application/SDP', SDP)}--sep--`;
    expect(read('Multipart/Mixed; boundary="sep"', body)).toBe(SDP);
  });

  test('finds the description in a nested part', () => {
    const inner = `--in\r\nContent-Type: application/sdp\r\n\r\n${SDP}\r\n--in--\r\n`;
    const body = `${part('multipart/alternative; boundary=in', inner)}--sep--\r\n`;
    expect(read('multipart/mixed; boundary=sep', body)).toBe(SDP);
  });

  test('does not search below the depth limit', () => {
    const inmost = `--c\r\nContent-Type: application/sdp\r\n\r\n${SDP}\r\n--c--\r\n`;
    const inner = `--b\r\nContent-Type: multipart/mixed;boundary=c\r\n\r\n${inmost}\r\n--b--\r\n`;
    expect(read('multipart/mixed;boundary=sep', `${part('multipart/mixed;boundary=b', inner)}--sep--`)).toBe('');
  });

  test.each([
    ['without such a part', `${part('application/isup', 'xyz')}--sep--`],
    ['without a closing delimiter', `--sep\r\nContent-Type: application/sdp\r\n\r\n${SDP}`],
    ['without parts', '--sep--'],
    ['in another encoding', `${part('application/sdp', 'dj0w', 'Content-Transfer-Encoding: base64\r\n')}--sep--`],
    ['after 16 other parts', `${part('text/plain', 'x').repeat(16)}${part('application/sdp', SDP)}--sep--`],
  ])('returns an empty description for a multipart body %s', (_what, body) => {
    expect(read('multipart/mixed;boundary=sep', body)).toBe('');
  });

  test('returns an empty description for a multipart body without a boundary', () => {
    expect(read('multipart/mixed', `${part('application/sdp', SDP)}--sep--`)).toBe('');
  });

  test('never returns more than the body, whatever the body', () => {
    const piece = fc.constantFrom('--sep', '\r\n', '--', 'Content-Type: application/sdp', '\r\n\r\n', SDP, 'x');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const body = pieces.join('');
        expect(read('multipart/mixed;boundary=sep', body)!.length).toBeLessThanOrEqual(body.length);
      }),
      { numRuns: fuzzRuns(5000) },
    );
  });
});
