import { describe, expect, test } from '@jest/globals';
import { UdpFlow, type UdpSockets } from './udp-flow.js';

function flowOver(sockets: Partial<UdpSockets> = {}) {
  const common: string[] = [];
  const own: string[] = [];
  let closed = 0;
  const connected = new Set<UdpFlow>();
  const totals = { packetsSent: 0, bytesSent: 0 };
  const flow = new UdpFlow({
    address: '192.0.2.1',
    port: 4000,
    local: 0,
    source: { bytes: Uint8Array.of(192, 0, 2, 1), port: 4000 },
    sockets: {
      send: (datagram) => common.push(datagram.toString()) > 0,
      connect: () => ({ send: (datagram) => own.push(datagram.toString()) < 0, close: () => (closed += 1) }),
      ...sockets,
    },
    totals,
    connected,
  });
  return { flow, common, own, connected, totals, closed: () => closed };
}

describe('a client’s UDP flow', () => {
  test('sends through the shared socket until it is chosen, and then through its own', () => {
    const { flow, common, own, connected, totals } = flowOver();
    expect(flow.send(Buffer.from('check'))).toBe(true);
    flow.chosen();
    expect(flow.send(Buffer.from('media'))).toBe(false);
    expect(common).toEqual(['check']);
    expect(own).toEqual(['media']);
    expect(connected.size).toBe(1);
    expect(totals).toEqual({ packetsSent: 2, bytesSent: 10 });
  });

  test('keeps its socket for a while after it is left, and longer if it is chosen again', () => {
    const { flow, connected, closed } = flowOver();
    flow.chosen();
    flow.left();
    flow.sweep();
    flow.chosen();
    flow.sweep();
    flow.sweep();
    expect(connected.size).toBe(1);
    expect(closed()).toBe(0);
    flow.left();
    flow.sweep();
    expect(closed()).toBe(0);
    flow.sweep();
    expect(connected.size).toBe(0);
    expect(closed()).toBe(1);
  });

  test('keeps a socket used by two transports until both have left', () => {
    const { flow, closed } = flowOver();
    flow.chosen();
    flow.chosen();
    flow.left();
    flow.sweep();
    flow.sweep();
    expect(closed()).toBe(0);
    flow.left();
    flow.sweep();
    flow.sweep();
    expect(closed()).toBe(1);
  });

  test('stays on the shared socket where no other can be opened', () => {
    const { flow, common, connected } = flowOver({ connect: () => undefined });
    flow.chosen();
    flow.send(Buffer.from('media'));
    flow.left();
    flow.sweep();
    expect(common).toEqual(['media']);
    expect(connected.size).toBe(0);
  });
});
