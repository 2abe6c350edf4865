import { describe, expect, jest, test } from '@jest/globals';
import { SCTP } from 'werift-sctp';
import { FAULTS, play, published } from '../testing/sctp-faults/index.mjs';
import { Association } from './association.js';

const TEXT = 51;

/** Our association as the scenarios see it. */
function ours({ send, onMessage, onReset }: Parameters<ReturnType<typeof published>>[0]) {
  const created = jest.spyOn(SCTP, 'server');
  const association = new Association({
    send,
    onReset,
    onMessage: (_stream, _protocol, data) => onMessage(data),
    onUp: () => undefined,
    onRoom: () => undefined,
    onResetDone: () => undefined,
    onDown: () => undefined,
  });
  const sctp = created.mock.results[0]?.value as SCTP;
  created.mockRestore();
  const receive = (packet: Buffer) => association.receive(packet);
  return {
    sctp,
    receive,
    carry: receive,
    send: (stream: number, data: Buffer, { maxRetransmits, isLate }: { maxRetransmits?: number; isLate?: boolean }) =>
      association.send(stream, TEXT, data, {
        ordered: true,
        ...(maxRetransmits === undefined ? {} : { maxRetransmits }),
        ...(isLate === true ? { maxLifetimeMs: -1_000 } : {}),
      }),
    reset: (stream: number) => association.reset(stream),
    isUp: () => association.isUp,
    close: () => {
      association.close();
      // Cancels the timers of an association that should have ended by itself.
      return sctp.stop();
    },
    patienceMs: 1_000,
  };
}

// Fails when the installed version no longer shows a fault. Then delete the scenario, its row in
// docs/reference/werift-sctp.md and, unless another fault needs it, our remedy.
describe.each(FAULTS)('werift-sctp $title', (fault) => {
  test('shows the fault as published', async () => {
    expect(await play(fault, published(SCTP))).toEqual(fault.faulty);
  });

  test('does not show the fault in our association', async () => {
    expect(await play(fault, ours)).toEqual(fault.correct);
  });
});
