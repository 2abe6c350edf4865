import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fuzzRuns } from '@bloom/time/testing';
import { RtspSplitter, type RtspMessage, writeMessage } from './rtsp-splitter.js';

/** Pushes the chunks and returns the output. */
function split(...chunks: (string | Buffer)[]): { messages: RtspMessage[]; media: string } {
  const messages: RtspMessage[] = [];
  const media: Buffer[] = [];
  const splitter = new RtspSplitter({
    onMessage: (message) => messages.push(message),
    onMedia: (bytes) => media.push(Buffer.from(bytes)),
  });
  for (const chunk of chunks) splitter.push(Buffer.from(chunk as string, 'latin1'));

  return { messages, media: Buffer.concat(media).toString('latin1') };
}

const frame = '$\x00\x00\x03abc';
const response = 'RTSP/1.0 200 OK\r\nCSeq: 3\r\nContent-Length: 4\r\n\r\nv=0\n';

describe('an RTSP connection', () => {
  test('is split the same way in one piece as in single bytes', () => {
    const whole = `${frame}${frame}${response}\r\n${frame}${response}`;
    const expected = {
      media: frame.repeat(3),
      messages: Array.from({ length: 2 }, () => ({
        start: 'RTSP/1.0 200 OK',
        fields: [
          ['cseq', '3'],
          ['content-length', '4'],
        ],
        body: Buffer.from('v=0\n'),
      })),
    };
    expect(split(whole)).toEqual(expected);
    expect(split(...whole)).toEqual(expected);
  });

  test('allows headers of at most 16 KiB', () => {
    const header = 'RTSP/1.0 200 OK\r\nX: ';
    expect(() => split(header, 'a'.repeat(17_000))).toThrow('more than 16384 bytes');
    expect(split(header, 'a'.repeat(16_000), '\r\n\r\n').messages).toHaveLength(1);
  });

  test('allows bodies of at most 64 KiB, and rejects larger ones before they arrive', () => {
    const announced = (length: string): unknown => split(`RTSP/1.0 200 OK\r\nContent-Length: ${length}\r\n\r\n`);
    for (const length of ['65537', '2147483647', '-1', '1e3', '99999999999']) {
      expect(() => announced(length)).toThrow('allowed are 65536');
    }
    expect(() => announced('65536')).not.toThrow();
  });

  test('is read whatever it contains, and buffers at most one message', () => {
    const pieces = fc.oneof(
      fc.constantFrom('$', '\r\n', '\r\n\r\n', 'RTSP/1.0 200 OK', 'Content-Length: 5', ': '),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 50 }), (chunks) => {
        try {
          split(...chunks);
        } catch (error) {
          expect(error).toMatchObject({ code: 'BAD_RTSP' });
        }
      }),
      { numRuns: fuzzRuns(200) },
    );
  });

  test('is written as it was read', () => {
    const { messages } = split(response);
    expect(split(writeMessage(messages[0]!)).messages).toEqual(messages);
  });
});
