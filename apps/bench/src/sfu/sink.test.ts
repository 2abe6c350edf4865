import { spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';

const gcc = spawnSync('gcc', ['--version']).status === 0;
const RTX_TYPE = 97;
const TRANSPORT_CC_ID = 3;

interface Sent {
  type?: number;
  sequence: number;
  transportNumber: number;
  padded?: boolean;
}

/** Returns an RTP packet of SSRC 5 with a one-byte header extension before the transport-wide number. */
function packet({ type = 96, sequence, transportNumber, padded = false }: Sent): Buffer {
  const bytes = Buffer.alloc(40);
  bytes[0] = 0x90 | (padded ? 0x20 : 0);
  bytes[1] = type;
  bytes.writeUInt16BE(sequence, 2);
  bytes.writeUInt32BE(5, 8);
  bytes.writeUInt32BE(0xbede0002, 12);
  bytes.set([0x10, 0x30, (TRANSPORT_CC_ID << 4) | 1], 16);
  bytes.writeUInt16BE(transportNumber, 19);

  return bytes;
}

/** Returns the bodies of the sink's frames with their types. */
function framesOf(output: Buffer): { type: number; body: Buffer }[] {
  const frames = [];
  for (let at = 0; at + 5 <= output.length; ) {
    const end = at + 5 + output.readUInt32LE(at + 1);
    if (end > output.length) break;
    frames.push({ type: output[at]!, body: output.subarray(at + 5, end) });
    at = end;
  }

  return frames;
}

/** Runs the sink on one socket, sends it these packets, and returns its frames once it has counted all of them. */
async function received(folder: string, packets: readonly Sent[]): Promise<{ type: number; body: Buffer }[]> {
  const program = join(folder, 'sink');
  expect(spawnSync('gcc', ['-o', program, join(import.meta.dirname, '../../native/sink.c')]).status).toBe(0);
  const [receiver, sender] = [createSocket('udp4'), createSocket('udp4')];
  await new Promise<void>((done) => receiver.bind(0, '127.0.0.1', done));
  const { port } = receiver.address() as AddressInfo;
  const { fd } = (receiver as Socket & { _handle: { fd: number } })._handle;
  const sink = spawn(program, ['3', '1', '1', String(RTX_TYPE), String(TRANSPORT_CC_ID)], {
    stdio: ['pipe', 'pipe', 'inherit', fd],
  });
  let output = Buffer.alloc(0);
  sink.stdout?.on('data', (data: Buffer) => {
    output = Buffer.concat([output, data]);
  });
  // The sink now owns the socket: this process must not read from it too.
  receiver.close();
  try {
    for (const each of packets) sender.send(packet(each), port, '127.0.0.1');
    await until(() => {
      const totals = framesOf(output).findLast(({ type }) => type === 2)?.body;
      if (totals === undefined) return false;
      return [0, 16, 24].reduce((sum, at) => sum + Number(totals.readBigUInt64LE(at)), 0) === packets.length;
    });
  } finally {
    const ended = once(sink, 'exit');
    sink.stdin?.end();
    await ended;
    sender.close();
  }

  return framesOf(output);
}

(gcc ? test : test.skip)(
  'copies, retransmissions and padding do not count as deliveries, and all arrivals are reported [needs gcc]',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloom-sink-'));
    try {
      const frames = await received(folder, [
        { sequence: 65_534, transportNumber: 10 },
        { sequence: 65_535, transportNumber: 11 },
        { sequence: 1, transportNumber: 12 },
        { sequence: 65_535, transportNumber: 13 },
        { sequence: 0, transportNumber: 14 },
        { sequence: 0, transportNumber: 15 },
        { sequence: 2, transportNumber: 16, padded: true },
        { sequence: 7, transportNumber: 17, type: RTX_TYPE },
        { sequence: 2, transportNumber: 65_535 },
      ]);
      const totals = frames.findLast(({ type }) => type === 2)!.body;
      expect([0, 16, 24].map((at) => Number(totals.readBigUInt64LE(at)))).toEqual([5, 1, 3]);
      const arrivals = frames.filter(({ type }) => type === 3).map(({ body }) => body);
      expect(arrivals.map((body) => body.readUInt32LE(4))).toEqual(arrivals.map(() => 5));
      const numbers = arrivals.flatMap((body) =>
        Array.from({ length: (body.length - 8) / 16 }, (_, i) => Number(body.readBigUInt64LE(16 + 16 * i))),
      );
      expect(numbers).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 65_535]);
      expect(frames.filter(({ type }) => type === 1)).toHaveLength(5);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
